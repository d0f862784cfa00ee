import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { prepareDataFolder } from '../../../dev/dataFolder.ts';

const umask = process.umask(0o022);
let root: string;
beforeAll(async () => {
  root = await mkdtemp(path.join(os.tmpdir(), 'holdfast-folder-'));
});
afterAll(async () => {
  process.umask(umask);
  await rm(root, { recursive: true });
});

const modeOf = async (file: string) => ((await stat(file)).mode & 0o777).toString(8);
const forOthers = 0o067;

test('a new folder, and what is created in it, is for its owner only', async () => {
  const folder = await prepareDataFolder(path.join(root, 'new'));
  await writeFile(path.join(folder, 'anything.log'), '');
  await mkdir(path.join(folder, 'anything'));
  expect(await modeOf(folder)).toBe('700');
  expect(await modeOf(path.join(folder, 'anything.log'))).toBe('600');
  expect(await modeOf(path.join(folder, 'anything'))).toBe('700');
});

test('what earlier versions left is closed; a link leads to no change elsewhere', async () => {
  const folder = path.join(root, 'old');
  const outside = path.join(root, 'outside');
  await mkdir(path.join(folder, 'backups'), { recursive: true });
  const files = ['master.key', 'temporal.db', 'postgres.log', 'backups/a.holdfast'];
  for (const file of [...files, '../outside', 'mine.txt']) {
    await writeFile(path.join(folder, file), '');
    await chmod(path.join(folder, file), 0o666);
  }
  await chmod(folder, 0o777);
  await symlink(outside, path.join(folder, 'temporal.log'));
  await prepareDataFolder(folder);
  for (const file of ['.', 'backups', ...files])
    expect((await stat(path.join(folder, file))).mode & forOthers).toBe(0);
  expect(await modeOf(outside)).toBe('666');
  // Not Holdfast's; the folder protects it.
  expect(await modeOf(path.join(folder, 'mine.txt'))).toBe('666');
});

test('a folder that everybody shares stays open', async () => {
  const shared = path.join(root, 'shared');
  await mkdir(shared);
  await chmod(shared, 0o1777);
  await prepareDataFolder(shared);
  expect(await modeOf(shared)).toBe('777');
});
