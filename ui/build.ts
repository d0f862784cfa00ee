import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

const ROOT = path.resolve(import.meta.dirname, '..');
const CACHE = path.join(ROOT, 'node_modules', '.cache', 'holdfast');

/** Bundles of earlier sources are kept for as long: another process may just read one. */
const KEPT_MS = 24 * 3_600_000;

/** Generated for the types of the API, of which nothing is left in the bundle (`npm run ui:types`). */
const GENERATED = ['app/openapi.json', 'app/schema.d.ts'];

/** Files outside of this folder that are bundled too. */
const SHARED = [
  'domain/inventory/cabling.ts',
  'domain/inventory/cidr.ts',
  'domain/inventory/importLimits.ts',
  'domain/shared/durations.ts',
  'domain/shared/errorMessage.ts',
  'domain/shared/errors.ts',
  'domain/shared/excerpt.ts',
  'domain/shared/jsonObject.ts',
  'domain/shared/jsonPointer.ts',
  'domain/views/views.ts',
  'platform/jsonDepth.ts',
  'platform/strictJson.ts',
];

/** The guides, which are bundled as data. */
const GUIDES = path.join(ROOT, 'docs');

const isSource = (file: string): boolean =>
  path.extname(file) !== '' && !GENERATED.includes(file.replaceAll(path.sep, '/'));

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  hash.update(await readFile(path.join(ROOT, 'package-lock.json')));
  const files = (await readdir(import.meta.dirname, { recursive: true })).filter(isSource).sort();
  for (const file of files)
    hash.update(file).update(await readFile(path.join(import.meta.dirname, file)));
  for (const file of SHARED) hash.update(file).update(await readFile(path.join(ROOT, file)));
  const guides = (await readdir(GUIDES).catch(() => []))
    .filter((file) => file.endsWith('.md'))
    .sort();
  for (const file of guides) hash.update(file).update(await readFile(path.join(GUIDES, file)));
  return hash.digest('hex').slice(0, 16);
}

/** The folder of the bundle of these sources. Any version of Node may build it, and another one serve it. */
export const consoleFolder = async (): Promise<string> =>
  path.join(CACHE, `console-${await fingerprint()}`);

const exists = (folder: string): Promise<boolean> =>
  stat(folder).then(
    () => true,
    () => false,
  );

/** Returns the folder of the console's bundle; undefined if it has not been built from these sources. */
export async function findConsoleBundle(): Promise<string | undefined> {
  const folder = await consoleFolder();
  return (await exists(folder)) ? folder : undefined;
}

/**
 * Builds the console, unless no source has changed since the last time. Vite needs some hundreds of
 * megabytes, so it runs in a process of its own. Returns the folder of the bundle. Errors: Vite is not
 * installed, since `npm ci --omit=dev` omits it; the sources have a mistake.
 */
export async function buildConsole(): Promise<string> {
  const folder = await consoleFolder();
  if (await exists(folder)) return folder;
  // Two processes may build concurrently, so each has its own folder and renames it.
  const own = `${folder}.${process.pid}`;
  try {
    await runVite(own);
    await compressFiles(own);
    await rename(own, folder).catch(async (error: unknown) => {
      if (!(await exists(folder))) throw error;
    });
  } finally {
    await rm(own, { recursive: true, force: true });
  }
  await removeOldBundles(folder);
  return folder;
}

const MAX_OUTPUT_BYTES = 2 ** 20;

async function runVite(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const manifest = createRequire(import.meta.url).resolve('vite/package.json');
  const vite = path.join(path.dirname(manifest), 'bin', 'vite.js');
  const args = [vite, 'build', import.meta.dirname, '--outDir', folder, '--logLevel', 'warn'];
  await promisify(execFile)(process.execPath, args, {
    cwd: ROOT,
    // Another value of NODE_ENV would bundle React's development build.
    env: { ...process.env, NODE_ENV: 'production', NODE_OPTIONS: '' },
    maxBuffer: MAX_OUTPUT_BYTES,
  });
}

const COMPRESSIBLE = /\.(css|js|svg)$/;
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };

/** Writes `.br` and `.gz` beside the assets, so that the server compresses nothing. */
async function compressFiles(folder: string): Promise<void> {
  const assets = path.join(folder, 'assets');
  const files = (await readdir(assets)).filter((file) => COMPRESSIBLE.test(file));
  await Promise.all(
    files.map(async (name) => {
      const file = path.join(assets, name);
      const content = await readFile(file);
      await writeFile(`${file}.br`, await promisify(brotliCompress)(content, BROTLI));
      await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
    }),
  );
}

async function removeOldBundles(current: string): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const folder = path.join(CACHE, name);
    if (!name.startsWith('console-') || folder === current) continue;
    const age = Date.now() - (await stat(folder).catch(() => ({ mtimeMs: Date.now() }))).mtimeMs;
    if (age > KEPT_MS) await rm(folder, { recursive: true, force: true });
  }
}
