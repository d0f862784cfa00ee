import { accessSync, constants } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe } from '@jest/globals';

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Chromium without what it has for windows: a page needs half the processor time. */
const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell';

/** What tests keep between runs, for all checkouts of the user. */
export const CACHE = path.join(
  process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'),
  'holdfast',
);

/** Programs that some tests need and npm does not provide; `.ci/install-peers` installs them. */
const PROGRAMS = {
  chromium: isExecutable(HEADLESS_SHELL) ? HEADLESS_SHELL : '/usr/bin/chromium',
  /** Python with the dependencies of clients/python. */
  python: path.join(CACHE, 'python-kit/bin/python'),
  slapd: '/usr/sbin/slapd',
  versitygw: path.join(CACHE, 'versitygw-1.8.0'),
} as const;

export type Program = keyof typeof PROGRAMS;

export const pathOf = (program: Program): string => PROGRAMS[program];

/** Like `describe`. Where the program is missing the tests are skipped, and their title says how to install it. */
export function describeWith(program: Program, title: string, tests: () => void): void {
  if (isExecutable(PROGRAMS[program])) describe(title, tests);
  else describe.skip(`${title} (needs ${program}, which .ci/install-peers installs)`, tests);
}
