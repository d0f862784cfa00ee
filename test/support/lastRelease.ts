import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

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

/** Writes the files of the last release to a temporary folder, with the packages of this version. */
export function unpackLastRelease(): { folder: string; remove(): void } {
  const folder = realpathSync(mkdtempSync(path.join(os.tmpdir(), 'holdfast-last-release-')));
  const archive = execFileSync('git', ['archive', '--format=tar', LAST_RELEASE.commit], {
    cwd: ROOT,
    maxBuffer: 1 << 28,
  });
  execFileSync('tar', ['-x', '-C', folder, '--exclude=test', '--exclude=docs'], {
    input: archive,
  });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
