import { access, constants, stat } from 'node:fs/promises';
import path from 'node:path';
import { workingFolder } from '../declaration/digest.ts';
import type { DeclaredType } from '../declaration/load.ts';
import { readSecret, secretUses } from './secrets.ts';

const isExecutable = async (file: string): Promise<boolean> => {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
};

/** The file of a program: by its path from `cwd`, or if its name has no slash, from `searchPath`. */
async function findProgram(
  name: string,
  cwd: string,
  searchPath: string,
): Promise<string | undefined> {
  const folders = searchPath.split(path.delimiter).filter((folder) => folder !== '');
  const files = name.includes('/')
    ? [path.resolve(cwd, name)]
    : folders.map((folder) => path.join(folder, name));
  for (const file of files) if (await isExecutable(file)) return file;
  return undefined;
}

const isProgram = async (name: string, cwd: string, searchPath: string): Promise<boolean> =>
  (await findProgram(name, cwd, searchPath)) !== undefined;

const ownPath = () => process.env.PATH ?? '';

/**
 * The file of a program of the runner itself, such as the wrapper of commands: a command's own `PATH` must not
 * choose it. Its name if there is none.
 */
export const ownProgram = async (name: string): Promise<string> =>
  (await findProgram(name, '/', ownPath())) ?? name;

const PACKAGES: Readonly<Record<string, string>> = {
  perl: 'perl (Debian: perl-base)',
  mkfifo: 'mkfifo (Debian: coreutils)',
};

/** What this machine lacks to run any command; empty if nothing. Each is a sentence. */
export async function missingForAll(wrapper: readonly string[]): Promise<string[]> {
  if (process.platform === 'win32') return ['Declared commands do not run on Windows'];
  const missing: string[] = [];
  for (const [program, description] of Object.entries(PACKAGES))
    if (!(await isProgram(program, '/', ownPath()))) missing.push(`There is no ${description}`);
  const [program] = wrapper;
  if (program !== undefined && !(await isProgram(program, '/', ownPath())))
    missing.push(`There is no program ${program}, which the runner wraps commands in`);
  return missing;
}

/** What this runner lacks to run a type; empty if nothing. Each is a sentence. */
export async function missingFor(
  { declaration, folder }: DeclaredType,
  { secretsFolder, wrapper }: { secretsFolder: string | undefined; wrapper: readonly string[] },
): Promise<string[]> {
  const missing: string[] = [];
  const { run, limits } = declaration;
  const cwd = workingFolder(folder, declaration);
  if (!(await stat(cwd).catch(() => undefined))?.isDirectory())
    missing.push(`There is no folder ${cwd}`);
  const [program = ''] = run.argv;
  // A wrapper may bring its own programs, as a container does.
  if (wrapper.length === 0 && !(await isProgram(program, cwd, run.env?.PATH ?? ownPath())))
    missing.push(
      program.includes('/')
        ? `${path.resolve(cwd, program)} is not an executable file`
        : `There is no program ${program}; a file beside the declaration is ./${program}`,
    );
  if (limits && !(await isProgram('prlimit', '/', ownPath())))
    missing.push('The type has limits, but there is no prlimit (Debian: util-linux)');
  if (limits?.processes !== undefined && process.getuid?.() === 0)
    missing.push(
      'The type limits its processes, which does not hold for root: the runner needs a user of its own',
    );
  for (const [, use] of secretUses(declaration)) {
    const secret = await readSecret(secretsFolder, use);
    if ('problem' in secret) missing.push(secret.problem);
  }
  return missing;
}
