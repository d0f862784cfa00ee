/** Prints messages for the user of `npm start`. */
export type TerminalConsole = {
  line(text: string): void;
  /**
   * Shows progress in one line that is overwritten; undefined finishes the line. If the output is
   * no terminal, a line is printed every 30 s.
   */
  progress(text: string | undefined): void;
};

const PROGRESS_INTERVAL_MS = 30_000;

export function createConsole(stream: NodeJS.WriteStream = process.stderr): TerminalConsole {
  let progressOpen = false;
  let progressAt = 0;
  return {
    line: (text) => void stream.write(`${text}\n`),
    progress(text) {
      if (stream.isTTY) {
        if (text !== undefined) stream.write(`\r\u001b[K${text}`);
        else if (progressOpen) stream.write('\n');
        progressOpen = text !== undefined;
      } else if (text !== undefined && Date.now() - progressAt > PROGRESS_INTERVAL_MS) {
        progressAt = Date.now();
        stream.write(`${text}\n`);
      }
    },
  };
}
