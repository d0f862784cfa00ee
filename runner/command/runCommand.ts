import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { attemptMasker } from '../../domain/jobs/attemptMasker.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { secretValuesIn } from '../../domain/jobs/secretFields.ts';
import { workingFolder } from '../declaration/digest.ts';
import type { DeclaredType } from '../declaration/load.ts';
import type { Declaration } from '../declaration/schema.ts';
import { storeArtifacts } from './artifacts.ts';
import { StopRequest, type Attempt, type AttemptTools } from './attempt.ts';
import { commandLine, environmentOf } from './commandLine.ts';
import type { Masker } from '../../domain/shared/masker.ts';
import { createOutput, type Output } from './output.ts';
import { readResult } from './resultFile.ts';
import { prepareRun, type PreparedRun } from './preparedRun.ts';
import type { RunFolder, WorkFolder } from './runFolder.ts';
import { prepareSecrets } from './secrets.ts';
import type { CommandExit, RunningCommand } from './shim.ts';

/** What a runner has for all commands. */
export type CommandHost = {
  workFolder: WorkFolder;
  /** A folder with a file for each secret. */
  secretsFolder: string | undefined;
  /** A program with arguments that starts each command, such as `bwrap`; empty if there is none. */
  wrapper: readonly string[];
};

/** Pipes that something still holds after the end of all processes are closed after this time. */
const PIPES_MS = 1_000;

/**
 * Runs a declared command for an attempt, and returns its result. At its end, all processes of the
 * command have ended and its folder is removed; the caller removes what it has prepared. Errors, without
 * secrets: `JobFailure`; the reason of `signal`, if that has stopped the command; a `StopRequest` with a cause.
 */
export async function runCommand(
  type: DeclaredType,
  attempt: Attempt,
  tools: AttemptTools,
  host: CommandHost & { prepared?: PreparedRun },
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  signal.throwIfAborted();
  const prepared = host.prepared ?? (await prepareRun(host.workFolder));
  try {
    return await runPrepared(type, attempt, { tools, host, prepared, signal });
  } finally {
    if (!host.prepared) await prepared.discard();
  }
}

type Run = {
  tools: AttemptTools;
  host: CommandHost;
  prepared: PreparedRun;
  signal: AbortSignal;
};

async function runPrepared(
  type: DeclaredType,
  attempt: Attempt,
  { tools, host, prepared, signal }: Run,
): Promise<Record<string, unknown>> {
  const { declaration, definition } = type;
  const { run } = prepared;
  const secrets = await prepareSecrets(declaration, attempt, run, host.secretsFolder).catch(
    throwOfMachine,
  );
  const masker = attemptMasker({
    named: secrets.values,
    ofPayload: secretValuesIn(declaration.payload, attempt.payload),
  });
  const { variables } = secrets;
  try {
    const output = createOutput(tools, masker, run.events);
    const execution = { type, attempt, host, prepared, variables, output, signal };
    const exit = await execute(execution).finally(() => output.end());
    await storeArtifacts(run.artifacts, tools, output, signal);
    throwUnlessSuccessful(type, exit);
    return masker.json(await readResult(run.result, definition.result)) as Record<string, unknown>;
  } catch (error) {
    throw error instanceof JobFailure ? maskedFailure(error, masker) : error;
  }
}

async function writeInputs({ payload, target }: Attempt, run: RunFolder): Promise<void> {
  await writeFile(run.payload, JSON.stringify(payload), { mode: 0o600 });
  if (target) await writeFile(run.target, JSON.stringify(target), { mode: 0o600 });
}

/** Throws a fault of the machine, such as a full disk, as the reason to stop: the attempt is not counted. */
function throwOfMachine(error: unknown): never {
  if (error instanceof JobFailure) throw error;
  throw new StopRequest('The runner could not write the files of the run', {
    code: 'interrupted',
    cause: error,
  });
}

const maskedFailure = (failure: JobFailure, masker: Masker): JobFailure =>
  new JobFailure(failure.code, masker.text(failure.message), {
    retryable: failure.retryable,
    ...(failure.retryAfterMs !== undefined && { retryAfterMs: failure.retryAfterMs }),
  });

type Execution = {
  type: DeclaredType;
  attempt: Attempt;
  host: CommandHost;
  prepared: PreparedRun;
  /** The variables of its secrets. */
  variables: Record<string, string>;
  output: Output;
  signal: AbortSignal;
};

/** Runs the command to its end, or stops it, and ends all its processes. */
async function execute(execution: Execution): Promise<CommandExit> {
  const { type, attempt, host, prepared, variables, output, signal } = execution;
  const { run, shim } = prepared;
  const { declaration, folder } = type;
  const { argv, wrapped } = await commandLine(declaration, attempt, host.wrapper);
  await writeInputs(attempt, run).catch(throwOfMachine);
  signal.throwIfAborted();
  const command = shim.run({
    argv,
    wrapped,
    cwd: workingFolder(folder, declaration),
    env: environmentOf(declaration, attempt, run, variables),
    mark: run.mark,
    lease: attempt.lease,
  });
  const outputs = Promise.all([
    output.read(command.stdout, 'stdout'),
    output.read(command.stderr, 'stderr'),
  ]);
  try {
    return await exitOrStop(command, execution);
  } finally {
    const left = await command.killAll();
    await closeOutputs(command, outputs);
    if (left.length > 0)
      output.note('error', `Processes could not be killed and still run: ${left.join(', ')}`);
  }
}

/** Waits for the pipes to end, but not for a process that holds them and could not be found. */
async function closeOutputs(command: RunningCommand, outputs: Promise<unknown>): Promise<void> {
  const limit = new AbortController();
  const late = sleep(PIPES_MS, undefined, { signal: limit.signal }).catch(() => undefined);
  await Promise.race([outputs, late]);
  limit.abort();
  command.stdout.destroy();
  command.stderr.destroy();
  await outputs;
}

/**
 * The API accepts the end of an attempt for a minute after its limit. What still runs is killed before that:
 * afterwards another attempt may begin.
 */
const GRACE_AFTER_LIMIT_MS = 45_000;

/** How long a command that started `elapsedMs` ago has to end itself, in milliseconds. */
export const graceLeftMs = (timeoutMs: number, elapsedMs: number): number =>
  Math.max(0, timeoutMs + GRACE_AFTER_LIMIT_MS - elapsedMs);

/**
 * Resolves when the command has ended by itself. Errors: the reason of the signal; `timed_out`. The command
 * has then been asked to stop, and its grace period is over or no process of it is left.
 */
async function exitOrStop(command: RunningCommand, execution: Execution): Promise<CommandExit> {
  const { type, attempt, output, signal } = execution;
  const startedAt = performance.now();
  const timeout = new AbortController();
  const timer = setTimeout(
    () =>
      timeout.abort(
        new JobFailure('timed_out', `The attempt took longer than ${attempt.timeoutMs} ms`),
      ),
    attempt.timeoutMs,
  );
  const stopped = AbortSignal.any([signal, timeout.signal]);
  try {
    const exit = await Promise.race([command.exit, abortOf(stopped)]);
    if (exit !== undefined) return exit;
  } finally {
    clearTimeout(timer);
  }
  const reason: unknown = stopped.reason;
  const maxGraceMs = reason instanceof StopRequest ? reason.maxGraceMs : Number.POSITIVE_INFINITY;
  const leftMs = graceLeftMs(attempt.timeoutMs, performance.now() - startedAt);
  await askToStop(command, type.declaration.stop, Math.min(maxGraceMs, leftMs), output);
  throw reason;
}

/**
 * Asks a command to stop, and resolves when none of its processes is left or the time for that is over. The first
 * process may end before those that it has started: they have the same time.
 */
async function askToStop(
  command: RunningCommand,
  { signal, graceSeconds }: Declaration['stop'],
  maxGraceMs: number,
  output: Output,
): Promise<void> {
  const graceMs = (await command.signal(signal)) ? Math.min(graceSeconds * 1_000, maxGraceMs) : 0;
  const limit = new AbortController();
  const late = sleep(graceMs, 'late', { signal: limit.signal }).catch(() => undefined);
  // Nothing else can ask these to stop any more.
  const ended = command.exit.then(() => command.signalDaemons(signal)).then(() => command.empty);
  if ((await Promise.race([ended, late])) === 'late' && graceMs > 0)
    output.note('warn', `The command did not end within ${graceMs} ms of ${signal}: killed`);
  limit.abort();
}

const abortOf = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });

/** Error: `JobFailure`, with the code that the type assigns to the exit code. */
function throwUnlessSuccessful({ declaration }: DeclaredType, exit: CommandExit): void {
  if (exit.kind === 'failed')
    throw new JobFailure('command_not_run', `The command could not be run: ${exit.reason}`);
  if (exit.kind === 'lost') throw new StopRequest('The runner did not renew the lease in time');
  if (exit.kind === 'killed') {
    const signals: Record<string, number> = os.constants.signals;
    const name = Object.keys(signals).find((each) => signals[each] === exit.signal) ?? 'a signal';
    throw new JobFailure('command_killed', `The command was killed by ${name}`);
  }
  if (exit.code === 0) return;
  const { exitCodes } = declaration;
  const known = exitCodes?.[String(exit.code)];
  throw new JobFailure(
    known?.code ?? 'command_failed',
    known?.message ?? `The command ended with exit code ${exit.code}`,
    {
      ...(known?.retryable !== undefined && { retryable: known.retryable }),
      ...(known?.retryAfterSeconds !== undefined && {
        retryAfterMs: known.retryAfterSeconds * 1_000,
      }),
    },
  );
}
