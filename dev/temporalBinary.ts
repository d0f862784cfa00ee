import { execFile, spawn } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Say } from './say.ts';

const run = promisify(execFile);

const VERSION = '1.5.1';
const MODULE = `github.com/temporalio/cli/cmd/temporal@v${VERSION}`;
const DOWNLOAD_LIMIT_MS = 120_000;

/** Where programs that were fetched or built are kept for all checkouts of this user. */
const cacheFolder = () => {
  const base =
    process.env.XDG_CACHE_HOME ??
    path.join(os.homedir(), os.platform() === 'darwin' ? 'Library/Caches' : '.cache');
  return path.join(base, 'holdfast');
};

const isProgram = (file: string) =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  );

const onPath = (name: string) =>
  (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => path.join(folder, name));

/** Lets the SDK's test server fetch its program; that part of the SDK is loaded only here. */
async function download(folder: string): Promise<string> {
  const { TestWorkflowEnvironment } = await import('@temporalio/testing');
  const scratch = await mkdtemp(path.join(folder, 'download-'));
  try {
    const starting = TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: 'cached-download', downloadDir: scratch, version: `v${VERSION}` },
      },
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('the download took too long')), DOWNLOAD_LIMIT_MS);
    });
    starting.catch(() => undefined);
    await (await Promise.race([starting, late]).finally(() => clearTimeout(timer))).teardown();
    const [file] = (await readdir(scratch)).filter((name) => name.startsWith('temporal'));
    if (file === undefined) throw new Error('the download left no program');
    const target = path.join(folder, `temporal-${VERSION}`);
    await rename(path.join(scratch, file), target);
    return target;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Builds the program from its Go module: about three minutes on two cores, once. */
async function build(folder: string, say: Say): Promise<string> {
  const bin = await mkdtemp(path.join(folder, 'build-'));
  const began = Date.now();
  const progress = setInterval(
    () =>
      say.progress(
        `building Temporal from its Go module, ${Math.round((Date.now() - began) / 1_000)} s`,
      ),
    1_000,
  );
  try {
    const env = { ...process.env, CGO_ENABLED: '0', GOBIN: bin, GOFLAGS: '' };
    const words: Buffer[] = [];
    const child = spawn('go', ['install', '-ldflags', '-s -w', MODULE], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.on('data', (chunk: Buffer) => void (words.push(chunk) > 500 && words.shift()));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', resolve);
    });
    if (code !== 0)
      throw new Error(
        `go install failed:\n${Buffer.concat(words).toString('utf8').split('\n').slice(-5).join('\n')}`,
      );
    const target = path.join(folder, `temporal-${VERSION}`);
    await rename(path.join(bin, 'temporal'), target);
    return target;
  } finally {
    clearInterval(progress);
    say.progress(undefined);
    await rm(bin, { recursive: true, force: true });
  }
}

/** Path of a `temporal` program: on PATH, kept from before, downloaded, or built; the first that works. */
export async function temporalBinary(say: Say): Promise<string> {
  const folder = cacheFolder();
  const kept = path.join(folder, `temporal-${VERSION}`);
  for (const file of [...onPath('temporal'), kept]) if (await isProgram(file)) return file;
  await mkdir(folder, { recursive: true });

  say.line('Temporal is not on this machine yet; fetching it once.');
  const failures: string[] = [];
  try {
    return await download(folder);
  } catch (error) {
    failures.push(`download: ${firstLine(error)}`);
  }
  const go = await run('go', ['version']).then(
    () => true,
    () => false,
  );
  if (go) {
    say.line(
      'It cannot be downloaded here; building it from its Go module, about 3 minutes, once.',
    );
    try {
      return await build(folder, say);
    } catch (error) {
      failures.push(`build: ${error instanceof Error ? error.message : String(error)}`);
    }
  } else {
    failures.push('build: there is no go on PATH');
  }
  throw new Error(
    `No Temporal server could be had:\n${failures.map((failure) => `  ${failure}`).join('\n')}\n` +
      'Put the temporal CLI on PATH, install Go, or set TEMPORAL_ADDRESS.',
  );
}

const firstLine = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0];
