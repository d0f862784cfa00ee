import type { Composition } from '../composition/index.ts';

/** A command of an operator, which uses the services of the product. */
export type Command = {
  /** One line: name, arguments, and what the command does. */
  usage: string;
  /** False for what needs no database. Without this, the schema must fit. */
  usesDatabase?(args: readonly string[]): boolean;
  /**
   * Reads the arguments, before anything is loaded or reached. The result does the work and returns the exit code.
   * Errors: `UsageError`; `HelpRequest`.
   */
  read(args: readonly string[]): (deps: Composition) => Promise<number>;
};
