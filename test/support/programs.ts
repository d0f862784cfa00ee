import { accessSync, constants } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe } from '@jest/globals';

/** Programs that some tests need and npm does not provide; `.ci/install-peers` installs them. */
const PROGRAMS = {
  chromium: '/usr/bin/chromium',
  slapd: '/usr/sbin/slapd',
  versitygw: path.join(
    process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'),
    'holdfast',
    'versitygw-1.8.0',
  ),
} as const;

export type Program = keyof typeof PROGRAMS;

export const pathOf = (program: Program): string => PROGRAMS[program];

function isInstalled(program: Program): boolean {
  try {
    accessSync(PROGRAMS[program], constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Like `describe`. Where the program is missing the tests are skipped, and their title says how to install it. */
export function describeWith(program: Program, title: string, tests: () => void): void {
  if (isInstalled(program)) describe(title, tests);
  else describe.skip(`${title} (needs ${program}, which .ci/install-peers installs)`, tests);
}
