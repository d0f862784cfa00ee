/** Plain lines for the person at the terminal. */
export type Say = {
  line(text: string): void;
  /** A line that replaces itself; undefined ends it. Without a terminal it is said every 30 s. */
  progress(text: string | undefined): void;
};

const QUIET_MS = 30_000;

export function createSay(stream: NodeJS.WriteStream = process.stderr): Say {
  let open = false;
  let saidAt = 0;
  return {
    line: (text) => void stream.write(`${text}\n`),
    progress(text) {
      if (stream.isTTY) {
        if (text !== undefined) stream.write(`\r\u001b[K${text}`);
        else if (open) stream.write('\n');
        open = text !== undefined;
      } else if (text !== undefined && Date.now() - saidAt > QUIET_MS) {
        saidAt = Date.now();
        stream.write(`${text}\n`);
      }
    },
  };
}
