import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { loadDeclaration, type DeclaredType } from '../../../runner/declaration/load.ts';
import type { Attempt, AttemptTools } from '../../../runner/command/attempt.ts';
import { runCommand, type CommandHost } from '../../../runner/command/runCommand.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';

/** What an attempt has reported. */
export type Reports = {
  lines: { level: string; message: string; data: object | undefined }[];
  progress: { percent: number; message: string | undefined }[];
  artifacts: { name: string; file: string }[];
};

/** Fields of a declaration beside those that every declaration needs. */
type Fields = { run?: Record<string, unknown> } & Record<string, unknown>;

export type RunOptions = {
  fields?: Fields;
  attempt?: Partial<Attempt>;
  host?: Partial<CommandHost>;
  signal?: AbortSignal;
  onLine?(message: string): void;
};

export type DeclaredTypes = Awaited<ReturnType<typeof createDeclaredTypes>>;

/** Declarations in a folder of their own, and how they run without a server. */
export async function createDeclaredTypes() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-types-'));
  const secretsFolder = path.join(folder, 'secrets');
  await mkdir(secretsFolder);
  const workFolder = await openWorkFolder(path.join(folder, 'work'));
  let count = 0;

  /** Writes a declaration; the `argv` of its command is `bash -c script`. */
  async function declare(script: string, { run, ...fields }: Fields = {}) {
    const file = path.join(folder, `type-${++count}.yaml`);
    const declaration = {
      apiVersion: 'holdfast/v1',
      name: `test.type-${count}`,
      summary: 'A test',
      pool: 'default',
      payload: { type: 'object' },
      run: { argv: ['bash', '-c', script], ...run },
      ...fields,
    };
    // JSON is YAML.
    await writeFile(file, JSON.stringify(declaration));
    return loadDeclaration(file);
  }

  async function run(type: DeclaredType, { attempt, host, signal, onLine }: RunOptions = {}) {
    const reports: Reports = { lines: [], progress: [], artifacts: [] };
    const tools: AttemptTools = {
      line(level, message, data) {
        reports.lines.push({ level, message, data });
        onLine?.(message);
      },
      progress: (percent, message) => void reports.progress.push({ percent, message }),
      artifact: (name, artifact) => {
        reports.artifacts.push({ name, file: artifact });
        return Promise.resolve();
      },
    };
    const outcome = await runCommand(
      type,
      {
        jobId: 'job_1',
        attempt: 1,
        payload: {},
        target: null,
        secrets: {},
        timeoutMs: 60_000,
        ...attempt,
      },
      tools,
      { workFolder, secretsFolder, wrapper: [], ...host },
      signal ?? new AbortController().signal,
    ).then(
      (result) => ({ result, error: undefined }),
      (error: unknown) => ({ result: undefined, error }),
    );
    return { ...outcome, ...reports, text: reports.lines.map(({ message }) => message).join('\n') };
  }

  return {
    folder,
    secretsFolder,
    workFolder,
    declare,
    run,
    /** Declares and runs a script. */
    script: async (text: string, options: RunOptions = {}) =>
      run(await declare(text, options.fields), options),
    addSecret: (name: string, value: string | Buffer) =>
      writeFile(path.join(secretsFolder, name), value),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** True for a process that runs and is no zombie. */
export async function isRunning(id: number): Promise<boolean> {
  const text = await readFile(`/proc/${id}/stat`, 'latin1').catch(() => '');
  const state = /^.*\)\s(\S)/s.exec(text)?.[1];
  return state !== undefined && state !== 'Z';
}
