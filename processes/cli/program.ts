import '../beginning.ts';
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import { isClientRefused, isConnectFailure } from '../../domain/shared/outage.ts';
import { ConfigError } from '../../platform/config.ts';

/** Exit code of a command that was called with invalid arguments. */
export const EXIT_USAGE = 2;

/** Exit code of a program whose reader has closed the pipe, as a shell reports SIGPIPE. */
const EXIT_BROKEN_PIPE = 141;

/** The arguments are invalid. The message says how; the usage is printed below it. */
export class UsageError extends Error {}

/** Asks for the usage instead of a run. */
export class HelpRequest extends Error {}

/** How a command is called: with npm or, where there is none, with `docker/holdfast`, which sets the variable. */
export const commandLine = (command: string, args: string): string =>
  process.env.CALLED_AS === 'holdfast'
    ? `holdfast ${command} ${args}`
    : `npm run ${command} -- ${args}`;

export const print = (text: string): void => void process.stdout.write(`${text}\n`);
export const complain = (text: string): void => void process.stderr.write(`${text}\n`);

type Limits<T extends ParseArgsOptionsConfig> = {
  options?: T;
  /** The largest number of words that are no options. 0 by default. */
  words?: number;
};

/**
 * Reads the arguments of a command: every command refuses what it does not know, and has `--help`. Errors: `UsageError`;
 * `HelpRequest`.
 */
export function readArguments<const T extends ParseArgsOptionsConfig>(
  args: readonly string[],
  { options, words = 0 }: Limits<T> = {},
) {
  if (args.includes('--help') || args.includes('-h')) throw new HelpRequest();
  const { values, positionals } = parse(args, (options ?? {}) as T);
  if (positionals.length > words) throw new UsageError(`Unexpected: ${positionals[words]}`);
  return { values, words: positionals };
}

function parse<T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // What follows the first sentence suggests a notation for words that begin with a dash.
    const [reason = ''] = (error as Error).message.split('. ');
    throw new UsageError(reason, { cause: error });
  }
}

/** Why no connection to the database could be opened. A server with several addresses has an error of each. */
function connectFailureOf(error: Error): string {
  const reasons =
    error instanceof AggregateError ? error.errors.map(errorMessage) : [error.message];
  const says = isClientRefused(error) ? 'refuses the connection' : 'does not answer';
  return `Failed: the database at DATABASE_URL ${says}: ${reasons.join(', ')}`;
}

/** Says why a command failed. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (isConnectFailure(error)) return connectFailureOf(error);
  if (error.name === 'TransportError')
    return `Failed: Temporal does not answer at TEMPORAL_ADDRESS: ${error.message}`;
  return error instanceof ConfigError ? error.message : `Failed: ${error.message}`;
}

/**
 * Runs a program of the command line and ends the process with the exit code that `run` returns, or that of its error. A
 * reader that closes the pipe early, such as `head`, ends it without a message.
 */
export async function runProgram(
  usage: (args: readonly string[]) => string,
  run: (args: readonly string[]) => Promise<number>,
): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endOnWriteError);
  const args = process.argv.slice(2);
  const code = await run(args).catch((error: unknown) => report(error, usage(args)));
  // An error of the last write is reported after it, and ends the process then.
  process.stdout.write('', (error) => error ?? process.exit(code));
}

function endOnWriteError(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit(EXIT_BROKEN_PIPE);
  complain(reasonOf(error));
  process.exit(1);
}

/** Prints the usage if an error of `readArguments` asks for it. Returns the exit code; undefined for other errors. */
export function answerWithUsage(error: unknown, usage: string): number | undefined {
  if (error instanceof HelpRequest) {
    print(usage);
    return 0;
  }
  if (!(error instanceof UsageError)) return undefined;
  complain(`${error.message}\n\n${usage}`);
  return EXIT_USAGE;
}

/** Returns the exit code. */
function report(error: unknown, usage: string): number {
  const code = answerWithUsage(error, usage);
  if (code !== undefined) return code;
  complain(reasonOf(error));
  return 1;
}
