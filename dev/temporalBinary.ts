import { execFile } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '../domain/shared/errorMessage.ts';
import type { TerminalConsole } from './console.ts';

const run = promisify(execFile);

const VERSION = '1.5.1';
const MODULE = `github.com/temporalio/cli/cmd/temporal@v${VERSION}`;
const DOWNLOAD_LIMIT_MS = 120_000;

/** Cache of downloaded and built programs, shared by all checkouts of this user. */
const cacheFolder = () => {
  const base =
    process.env.XDG_CACHE_HOME ??
    path.join(os.homedir(), os.platform() === 'darwin' ? 'Library/Caches' : '.cache');
  return path.join(base, 'holdfast');
};

const isExecutable = (file: string) =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  );

const pathCandidates = (name: string) =>
  (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => path.join(folder, name));

type Fetch = { folder: string; terminal: TerminalConsole; signal: AbortSignal };

/** Downloads the program with the SDK's test server, the only use of that package outside tests. */
async function download({ folder, signal }: Fetch): Promise<string> {
  const { TestWorkflowEnvironment } = await import('@temporalio/testing');
  const scratch = await mkdtemp(path.join(folder, 'download-'));
  try {
    const starting = TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: 'cached-download', downloadDir: scratch, version: `v${VERSION}` },
      },
    });
    const stopped = starting.then((server) => server.teardown());
    const limit = AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_LIMIT_MS)]);
    await abortable(stopped, limit);
    const [file] = (await readdir(scratch)).filter((name) => name.startsWith('temporal'));
    if (file === undefined) throw new Error('the downloaded archive has no program');
    const target = path.join(folder, `temporal-${VERSION}`);
    await rename(path.join(scratch, file), target);
    return target;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Resolves with `work`, or rejects when `signal` is aborted first; `work` then continues
 * unobserved.
 */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => undefined);
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Builds the program from its Go module: about three minutes on two cores. */
async function buildFromSource({ folder, terminal, signal }: Fetch): Promise<string> {
  const bin = await mkdtemp(path.join(folder, 'build-'));
  const startedAt = Date.now();
  const progress = setInterval(() => {
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    terminal.progress(`Building Temporal from its Go module, ${seconds} s`);
  }, 1_000);
  try {
    await run('go', ['install', '-ldflags', '-s -w', MODULE], {
      env: { ...process.env, CGO_ENABLED: '0', GOBIN: bin, GOFLAGS: '' },
      maxBuffer: 16 * 1_048_576,
      signal,
    });
    const target = path.join(folder, `temporal-${VERSION}`);
    await rename(path.join(bin, 'temporal'), target);
    return target;
  } finally {
    clearInterval(progress);
    terminal.progress(undefined);
    await rm(bin, { recursive: true, force: true });
  }
}

const hasGo = () =>
  run('go', ['version']).then(
    () => true,
    () => false,
  );

const never = new AbortController().signal;

/**
 * Returns the path of a `temporal` program: from PATH, from the cache, downloaded, or built with
 * Go; the first that works. Errors: none of these works; the reason of `signal`.
 */
export async function temporalBinary(
  terminal: TerminalConsole,
  signal: AbortSignal = never,
): Promise<string> {
  const folder = cacheFolder();
  const cached = path.join(folder, `temporal-${VERSION}`);
  for (const file of [...pathCandidates('temporal'), cached]) {
    if (await isExecutable(file)) return file;
  }
  await mkdir(folder, { recursive: true });

  terminal.line('Temporal is not installed; downloading it once.');
  const failures: string[] = [];
  const attempt = (name: string, work: Promise<string>) =>
    work.catch((error: unknown) => {
      signal.throwIfAborted();
      failures.push(`${name}: ${lastLines(error)}`);
    });
  const downloaded = await attempt('download', download({ folder, terminal, signal }));
  if (downloaded !== undefined) return downloaded;
  if (await hasGo()) {
    terminal.line('The download failed; building Temporal from its Go module (about 3 minutes).');
    const built = await attempt('build', buildFromSource({ folder, terminal, signal }));
    if (built !== undefined) return built;
  } else {
    failures.push('build: there is no go on PATH');
  }
  throw new Error(
    `No Temporal server is available:\n${failures.map((failure) => `  ${failure}`).join('\n')}\n` +
      'Put the temporal CLI on PATH, install Go, or set TEMPORAL_ADDRESS.',
  );
}

/** The end of a message: the output of a failed build has its cause in the last lines. */
const lastLines = (error: unknown) => errorMessage(error).trim().split('\n').slice(-5).join('\n  ');
