import { JobFailure } from '../../domain/jobs/jobType.ts';
import { parseArgument, type ArgumentPart } from '../declaration/placeholders.ts';
import type { Declaration } from '../declaration/schema.ts';
import type { Attempt } from './attempt.ts';
import { ownProgram } from './capabilities.ts';
import type { RunFolder } from './runFolder.ts';

const refused = (message: string) =>
  new JobFailure('argument_refused', message, { retryable: false });

/** The value of a placeholder as text. */
function valueOf(part: Exclude<ArgumentPart, string>, { payload, target }: Attempt): string {
  if (part.of === 'target') {
    if (!target) throw refused('The job has no target');
    return target[part.field];
  }
  const value = Object.hasOwn(payload, part.field) ? payload[part.field] : undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw refused(`The payload has no text, number or boolean ${part.field}`);
}

/**
 * One argument with its placeholders replaced: it stays one argument, whatever the values are. Error:
 * `JobFailure('argument_refused')`, also if a value would make an option of it.
 */
export function resolveArgument(argument: string, attempt: Attempt): string {
  const { parts } = parseArgument(argument);
  const resolved = parts
    .map((part) => (typeof part === 'string' ? part : valueOf(part, attempt)))
    .join('');
  if (resolved.includes('\0'))
    throw refused(`The argument ${argument} would contain the character U+0000`);
  if (typeof parts[0] === 'object' && resolved.startsWith('-'))
    throw refused(`The argument ${argument} would begin with a hyphen, as options do`);
  return resolved;
}

/** `prlimit` and its arguments, or nothing if a declaration has no limits. */
async function limitPrefix({ limits }: Declaration): Promise<string[]> {
  const options = [
    ...(limits?.memoryMb === undefined ? [] : [`--data=${limits.memoryMb * 1_048_576}`]),
    ...(limits?.processes === undefined ? [] : [`--nproc=${limits.processes}`]),
  ];
  return options.length === 0 ? [] : [await ownProgram('prlimit'), ...options, '--'];
}

/**
 * The program and its arguments, with the limits of the type and the wrapper of the runner before them. `wrapped` are
 * those of the wrapper and the program, empty without a wrapper.
 */
export async function commandLine(
  declaration: Declaration,
  attempt: Attempt,
  [program, ...options]: readonly string[],
): Promise<{ argv: string[]; wrapped: string[] }> {
  const limits = await limitPrefix(declaration);
  const argv = declaration.run.argv.map((argument) => resolveArgument(argument, attempt));
  if (program === undefined) return { argv: [...limits, ...argv], wrapped: [] };
  const wrapped = [await ownProgram(program), ...options, ...argv];
  return { argv: [...limits, ...wrapped], wrapped };
}

/** The whole environment of a command. Nothing else of the runner's own is in it than `PATH`. */
export const environmentOf = (
  { run }: Declaration,
  attempt: Attempt,
  folder: RunFolder,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  HOME: folder.home,
  TMPDIR: folder.tmp,
  LANG: 'C.UTF-8',
  ...run.env,
  ...secrets,
  HOLDFAST_RUN: folder.mark,
  HOLDFAST_JOB_ID: attempt.jobId,
  HOLDFAST_ATTEMPT: String(attempt.attempt),
  HOLDFAST_PAYLOAD: folder.payload,
  ...(attempt.target && { HOLDFAST_TARGET: folder.target }),
  HOLDFAST_RESULT: folder.result,
  HOLDFAST_EVENTS: folder.events,
  HOLDFAST_ARTIFACTS: folder.artifacts,
});
