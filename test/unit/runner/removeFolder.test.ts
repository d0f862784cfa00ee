import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { removeFolder } from '../../../runner/command/removeFolder.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

const NOBODY = 65_534;
const isRoot = process.geteuid?.() === 0;

/** Does `work` as a user who is not spared from the permissions of files, as root is. */
async function unprivileged<T>(work: () => Promise<T>): Promise<T> {
  if (!isRoot) return work();
  process.seteuid?.(NOBODY);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

/** A path that is longer than the system allows: nobody can remove what is below with `fs.rm`. */
const DEEP = 'n=$(printf "%0200d" 0); for i in $(seq 25); do mkdir $n; cd -P ./$n; done';

let root: string;
let types: DeclaredTypes;

beforeAll(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'holdfast-remove-'));
  if (isRoot) await chmod(root, 0o777);
  types = await createDeclaredTypes();
});
afterAll(() => void execFileSync('rm', ['-rf', root, types.folder]));

/** Removes a folder. Returns what could not be removed. */
async function leftOf(folder: string): Promise<string[]> {
  const left: string[] = [];
  await removeFolder(folder, (each) => void left.push(each));
  return left;
}

/** A folder with files in directories without write permission, as the module cache of Go. */
async function createReadOnly(name: string): Promise<string> {
  const folder = path.join(root, name);
  const inner = path.join(folder, 'pkg/mod');
  await mkdir(inner, { recursive: true });
  await writeFile(path.join(inner, 'file'), '', { mode: 0o444 });
  await chmod(inner, 0o555);
  await chmod(path.dirname(inner), 0o000);
  return folder;
}

test('directories without write permission are removed with their files', async () => {
  await unprivileged(async () => {
    expect(await leftOf(await createReadOnly('read-only'))).toEqual([]);
  });
  expect(await readdir(root)).not.toContain('read-only');
});

test('a command that leaves what cannot be removed fails neither itself nor the end of its runner nor the next start', async () => {
  const work = path.join(root, 'work');
  const left: string[] = [];
  const onLeft = (folder: string) => void left.push(path.relative(work, folder));
  const first = await openWorkFolder(work, onLeft);
  const own = path.basename(first.folder);
  const { result } = await types.script(`cd $HOME; ${DEEP}`, { host: { workFolder: first } });
  expect(result).toEqual({});
  expect(left).toEqual([expect.stringMatching(`^${own}/hfrun-`)]);
  await first.remove();
  expect(left.slice(1)).toEqual([own]);
  // As that of a runner that does not run any more.
  execFileSync('mv', [first.folder, path.join(work, '4000000-1')]);
  const next = await openWorkFolder(work, onLeft);
  expect(left.slice(2)).toEqual(['4000000-1']);
  expect((await types.script('true', { host: { workFolder: next } })).result).toEqual({});
  await next.remove();
});
