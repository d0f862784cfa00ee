import { copyFile, mkdir, readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';
import { compileForeignSchema } from '../../platform/foreignSchema.ts';
import { parseStrictJson } from '../../platform/strictJson.ts';
import { StopRequest } from '../../runner/command/attempt.ts';
import { missingFor, missingForAll } from '../../runner/command/capabilities.ts';
import { removeFolder } from '../../runner/command/removeFolder.ts';
import { runCommand } from '../../runner/command/runCommand.ts';
import { openWorkFolder } from '../../runner/command/runFolder.ts';
import { loadDeclaration, type DeclaredType } from '../../runner/declaration/load.ts';
import { DeclarationError } from '../../runner/declaration/readDeclaration.ts';
import { readWrapper } from '../../runner/config.ts';
import { onStopSignals } from '../beginning.ts';
import { commandLine, complain, print, readArguments, runProgram, UsageError } from './program.ts';

const USAGE = `${commandLine('job-type', 'check <file>…')}
  Checks declarations of job types, and whether this machine can run them.
${commandLine('job-type', 'try <file> [--payload <json>|@<file>] [--target <name>] [--artifacts <folder>]')}
  Runs a job type on this machine, without a server. Lines go to standard error, the result to standard output.
The secrets of types are files in HOLDFAST_RUNNER_SECRETS; HOLDFAST_RUNNER_WRAPPER wraps commands.`;

const host = () => ({
  secretsFolder: process.env.HOLDFAST_RUNNER_SECRETS,
  wrapper: readWrapper(process.env.HOLDFAST_RUNNER_WRAPPER),
});

/** Loads a declaration that this machine can run. Prints what is wrong; undefined then. */
async function loadRunnable(file: string): Promise<DeclaredType | undefined> {
  try {
    const type = await loadDeclaration(file);
    const missing = [...(await missingForAll(host().wrapper)), ...(await missingFor(type, host()))];
    if (missing.length === 0) return type;
    complain(`${file}: this machine cannot run ${type.definition.name}:`);
    for (const each of missing) complain(`  ${each}`);
  } catch (error) {
    if (!(error instanceof DeclarationError)) throw error;
    for (const problem of error.problems) complain(problem);
  }
  return undefined;
}

async function check(files: readonly string[]): Promise<number> {
  if (files.length === 0) throw new UsageError('no file');
  let isGood = true;
  for (const file of files) {
    const type = await loadRunnable(file);
    if (type) {
      const { name, pool } = type.definition;
      print(`${file}: ${name}, pool ${pool}, digest ${type.digest.slice(0, 12)}`);
    } else isGood = false;
  }
  return isGood ? 0 : 1;
}

async function readPayload(option: string): Promise<Record<string, unknown>> {
  const text = option.startsWith('@') ? await readFile(option.slice(1), 'utf8') : option;
  const { value, errors } = parseStrictJson(text, () => true);
  const [first] = errors;
  if (first)
    throw new UsageError(`the payload ${first.pointer} ${first.message}`.replace('  ', ' '));
  if (!isJsonObject(value)) throw new UsageError('the payload is not a JSON object');
  return value;
}

const onLeft = (folder: string, error: unknown) =>
  complain(`The folder ${folder} could not be removed: ${String(error)}`);

type TryOptions = { payload?: string; target?: string; artifacts?: string };

async function tryType(file: string, options: TryOptions): Promise<number> {
  const type = await loadRunnable(file);
  if (!type) return 1;
  const { definition } = type;
  const payload = await readPayload(options.payload ?? '{}');
  const errors = compileForeignSchema(definition.payload)(payload);
  for (const { pointer, message } of errors) complain(`payload${pointer} ${message}`);
  if (errors.length > 0) return 1;
  if (definition.targets !== 'none' && options.target === undefined)
    throw new UsageError('the jobs of this type belong to a site or a device: --target <name>');
  if (definition.secrets)
    complain(
      `Without a server, the secrets of Holdfast are missing: ${Object.keys(definition.secrets).join(', ')}`,
    );
  const root = path.join(os.tmpdir(), `holdfast-try-${process.pid}`);
  const workFolder = await openWorkFolder(root, onLeft);
  try {
    const result = await runCommand(
      type,
      {
        jobId: 'job_try',
        attempt: 1,
        payload,
        target:
          options.target === undefined || definition.targets === 'none'
            ? null
            : { kind: definition.targets, id: 'try', name: options.target },
        secrets: {},
        timeoutMs: definition.timeoutSeconds * 1_000,
      },
      {
        line: (level, message, data) =>
          complain(`${level.padEnd(5)} ${message}${data ? ` ${JSON.stringify(data)}` : ''}`),
        progress: (percent, message) => complain(`${percent} % ${message ?? ''}`),
        artifact: (name, artifact) => keepArtifact(name, artifact, options.artifacts),
      },
      { workFolder, ...host() },
      stopOnSignals(),
    );
    print(JSON.stringify(result, null, 2));
    return 0;
  } catch (error) {
    if (error instanceof JobFailure)
      complain(
        `Failed: ${error.code}: ${error.message} (${error.retryable ? 'is' : 'is not'} retried)`,
      );
    else if (error instanceof StopRequest) complain(`Stopped: ${error.message}`);
    else throw error;
    return 1;
  } finally {
    await removeFolder(root, onLeft);
  }
}

async function keepArtifact(name: string, file: string, folder: string | undefined): Promise<void> {
  if (folder === undefined) {
    complain(`artifact ${name}; --artifacts <folder> keeps it`);
    return;
  }
  await mkdir(folder, { recursive: true });
  await copyFile(file, path.join(folder, name));
  complain(`artifact ${path.join(folder, name)}`);
}

/** Aborted at the first signal that asks this process to stop. A second one ends it immediately. */
function stopOnSignals(): AbortSignal {
  const stop = new AbortController();
  onStopSignals((signal) => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new StopRequest(signal));
  });
  return stop.signal;
}

async function main(args: readonly string[]): Promise<number> {
  const { words, values } = readArguments(args, {
    options: {
      payload: { type: 'string' },
      target: { type: 'string' },
      artifacts: { type: 'string' },
    },
    words: Infinity,
  });
  const [command, file, ...more] = words;
  if (command === 'check') return check(words.slice(1));
  if (command === 'try' && file !== undefined && more.length === 0) return tryType(file, values);
  throw new UsageError('check or try, and a file');
}

await runProgram(() => USAGE, main);
