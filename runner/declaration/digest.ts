import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Declaration } from './schema.ts';

/** Larger files are data rather than code; reading them for each job would delay it. */
const MAX_CODE_BYTES = 67_108_864;

/** Why the digest of a declaration cannot be computed. */
export class DigestError extends Error {}

/**
 * A JSON value with the keys of its objects in order: equal values have equal texts. Keys that are numbers come first,
 * unlike those of `sortedJson`, and digests have been stored: it stays as it is.
 */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, inOrder(inner)]),
  );
}

/** The folder in which the command of a declaration in `folder` starts. */
export const workingFolder = (folder: string, { run }: Declaration): string =>
  path.resolve(folder, run.cwd ?? '.');

/**
 * The files inside of the declaration's folder that its arguments name, absolute and sorted. Paths are
 * relative to the folder in which the command starts.
 */
export async function namedFiles(folder: string, declaration: Declaration): Promise<string[]> {
  const root = await realpath(folder);
  const cwd = workingFolder(folder, declaration);
  const candidates = declaration.run.argv.map(async (argument) => {
    if (argument === '' || argument.includes('\0')) return [];
    try {
      const file = await realpath(path.resolve(cwd, argument));
      return file.startsWith(root + path.sep) && (await stat(file)).isFile() ? [file] : [];
    } catch {
      return [];
    }
  });
  return [...new Set((await Promise.all(candidates)).flat())].sort();
}

async function addFile(hash: Hash, root: string, file: string): Promise<void> {
  const { size, mode } = await stat(file);
  if (size > MAX_CODE_BYTES)
    throw new DigestError(`${file} is larger than ${MAX_CODE_BYTES} bytes`);
  const isExecutable = (mode & 0o100) !== 0;
  hash.update(JSON.stringify([path.relative(root, file), size, isExecutable]));
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
}

/**
 * The SHA-256 (hex) of a declaration and of the files that it names. Comments and the order of keys do
 * not count. Files that those files read are not part of it. Error: `DigestError`.
 */
export async function digestOf(folder: string, declaration: Declaration): Promise<string> {
  const root = await realpath(folder);
  const hash = createHash('sha256');
  hash.update(JSON.stringify(inOrder(declaration)));
  for (const file of await namedFiles(folder, declaration)) await addFile(hash, root, file);
  return hash.digest('hex');
}
