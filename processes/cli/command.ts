import type { Composition } from '../composition/index.ts';

/** Exit code of a command that was called with invalid arguments. */
export const EXIT_USAGE = 2;

export type Command = {
  /** One line: name, arguments, and what the command does. */
  usage: string;
  /** False for a command that reads and changes Temporal only. */
  usesDatabase?: false;
  /** Returns the exit code. */
  run(deps: Composition, args: readonly string[]): Promise<number>;
};

export const print = (text: string): void => void process.stdout.write(`${text}\n`);
