declare module 'samlp' {
  const samlp: {
    auth(options: object): (req: object, res: object, next: (error: Error) => void) => void;
    metadata(options: object): (req: object, res: object) => void;
  };
  export default samlp;
}
