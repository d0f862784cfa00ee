import type { Composition } from '../composition/index.ts';

/** A command of an operator, which uses the services of the product. */
export type Command = {
  /** One line: name, arguments, and what the command does. */
  usage: string;
  /** False for a command that reads and changes Temporal only. */
  usesDatabase?: false;
  /**
   * Reads the arguments, before anything is loaded or reached. The result does the work and returns the exit code.
   * Errors: `UsageError`; `HelpRequest`.
   */
  read(args: readonly string[]): (deps: Composition) => Promise<number>;
};
