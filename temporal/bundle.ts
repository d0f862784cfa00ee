import { createHash } from 'node:crypto';
import { mkdir, readFile, readdir, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

const ROOT = path.resolve(import.meta.dirname, '..');
const CACHE = path.join(ROOT, 'node_modules', '.cache', 'holdfast');

/** Folders with code that the bundle may contain: the workflows and what they may import. */
const SOURCES = ['temporal', 'domain'];

/** What precedes the source map at the end of a bundle. The SDK requires that there is one. */
const SOURCE_MAP = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256');
  hash.update(await readFile(path.join(ROOT, 'node_modules/@temporalio/worker/package.json')));
  for (const folder of SOURCES) {
    const files = (await readdir(path.join(ROOT, folder), { recursive: true }))
      .filter((f) => f.endsWith('.ts'))
      .sort();
    for (const file of files)
      hash.update(file).update(await readFile(path.join(ROOT, folder, file)));
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * The bundle without its source map, and without stack traces in workflow code: the SDK records the
 * stack of every promise and maps each frame, which took a fifth of the time of a short run (ADR 38).
 */
export function withoutStackTraces(code: string): string {
  const mapAt = code.lastIndexOf(SOURCE_MAP);
  if (mapAt === -1) throw new Error('The bundle of the workflows has no source map');
  // A bundle that is not in a file has the name in its map.
  const map = JSON.stringify({
    version: 3,
    file: 'workflows.js',
    sources: [],
    names: [],
    mappings: '',
  });
  const emptyMap = SOURCE_MAP + Buffer.from(map).toString('base64');
  return `Error.stackTraceLimit = undefined;\n${code.slice(0, mapAt)}${emptyMap}\n`;
}

/** A file with the bundle; or its code, and why it could not be written. */
export type StoredBundle = { codePath: string } | { code: string; writeError: unknown };

/**
 * Bundles the workflow code into one file, unless no source has changed since the last time.
 * Bundling takes seconds, so images run it when they are built (`npm run bundle`). A process that may not
 * write the file, such as one of a read-only installation, works with the code.
 */
export async function workflowBundle(folder = CACHE): Promise<StoredBundle> {
  const file = path.join(folder, `workflows-${await fingerprint()}.js`);
  const exists = await stat(file).then(
    () => true,
    () => false,
  );
  if (exists) return { codePath: file };
  const bundle = await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./workflows/index.ts', import.meta.url)),
    workflowInterceptorModules: [
      fileURLToPath(new URL('./workflows/shared/tenantHeader.ts', import.meta.url)),
      fileURLToPath(new URL('./workflows/shared/traceHeader.ts', import.meta.url)),
    ],
    logger: new DefaultLogger('WARN'),
  });
  const code = withoutStackTraces(bundle.code);
  try {
    await writeBundle(file, code);
    return { codePath: file };
  } catch (writeError) {
    return { code, writeError };
  }
}

async function writeBundle(file: string, code: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  // Two processes may bundle concurrently, so each writes its own file and renames it.
  const tempFile = `${file}.${process.pid}`;
  await writeFile(tempFile, code);
  await rename(tempFile, file);
}
