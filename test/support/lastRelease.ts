import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import { CACHE } from './programs.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** The last release: its version, its commit, and the newest migration that it knows. */
export const LAST_RELEASE = JSON.parse(
  readFileSync(path.join(ROOT, 'test/fixtures/lastRelease.json'), 'utf8'),
) as { version: string; commit: string; migration: string };

/** False in a copy without history, such as a shallow clone. */
export function hasLastRelease(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${LAST_RELEASE.commit}^{commit}`], {
      cwd: ROOT,
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}

/**
 * A folder with the files of the last release and the packages of this version. It stays, one for each checkout: Node
 * finds what it has compiled by the paths of files.
 */
export function lastReleaseFolder(): string {
  const checkout = createHash('sha256').update(ROOT).digest('hex').slice(0, 12);
  const folder = path.join(CACHE, `release-${LAST_RELEASE.commit.slice(0, 12)}-${checkout}`);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const unfinished = mkdtempSync(`${folder}-`);
  const archive = execFileSync('git', ['archive', '--format=tar', LAST_RELEASE.commit], {
    cwd: ROOT,
    maxBuffer: 1 << 28,
  });
  execFileSync('tar', ['-x', '-C', unfinished, '--exclude=test', '--exclude=docs'], {
    input: archive,
  });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(unfinished, 'node_modules'));
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    // Another test file was faster.
    rmSync(unfinished, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
