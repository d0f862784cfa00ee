/** Guides are Markdown files, which the build reads. */
declare module '*.md' {
  const guide: import('./guide.ts').Guide;
  export default guide;
}
