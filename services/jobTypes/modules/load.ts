import { glob, stat } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorMessage } from '../../../domain/shared/errorMessage.ts';
import { configError } from '../../../platform/config.ts';
import { within } from '../../../platform/within.ts';
import { definitionProblems } from './definition.ts';
import { JOB_TYPE_MARK, type ModuleJobType } from './jobType.ts';

const SETTING = 'HOLDFAST_JOB_TYPES';

/** How long a module may take to load. */
const LOAD_MS = 30_000;

/** What modules import, wherever they are: the files of this installation. */
const OWN_MODULES: Readonly<Record<string, string>> = {
  'holdfast/job-type': new URL('./jobType.ts', import.meta.url).href,
  'holdfast/job-type/testing': new URL('./testing.ts', import.meta.url).href,
};

const PACKAGE = /^(@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*(\/[\w./~-]+)?$/i;
const NOT_TYPES = /\.d\.[cm]?ts$|\.(test|spec)\.[cm]?[jt]s$/;

/** A file or a package, and the entry of the setting that names it. */
type Source = { entry: string; specifier: string; shown: string };

type Loaded = { type: ModuleJobType; from: string };

let hooked = false;

/** Resolves `holdfast/job-type` for modules outside of this package; once in a process. */
function provideOwnModules(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({
    resolve: (specifier, context, next) => {
      const url = OWN_MODULES[specifier];
      return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
    },
  });
}

/** Imports a package as the folder `folder` has it installed. */
async function importFrom(folder: string, specifier: string): Promise<unknown> {
  const parentURL = pathToFileURL(path.join(folder, 'package.json')).href;
  const hook = registerHooks({
    resolve: (each, context, next) =>
      next(each, each === specifier ? { ...context, parentURL } : context),
  });
  try {
    return await import(specifier);
  } finally {
    hook.deregister();
  }
}

const isPattern = (entry: string): boolean => /[*?[\]{}]/.test(entry);

const isFile = (entry: string): boolean =>
  isPattern(entry) ||
  entry.startsWith('.') ||
  path.isAbsolute(entry) ||
  /\.[cm]?[jt]s$/.test(entry);

const firstLine = (error: unknown): string => errorMessage(error).split('\n', 1)[0] ?? '';

/**
 * Loads the job types of modules: files, patterns of files and packages. Error: `ConfigError` with
 * everything that is wrong, each with its file.
 */
export async function loadJobTypeModules(
  entries: readonly string[],
  { folder = process.cwd(), loadMs = LOAD_MS }: { folder?: string; loadMs?: number } = {},
): Promise<ModuleJobType[]> {
  if (entries.length === 0) return [];
  provideOwnModules();
  const problems: string[] = [];
  const sources: Source[] = [];
  for (const entry of entries) {
    const found = await sourcesOf(entry, folder);
    if (typeof found === 'string') problems.push(`"${entry}" ${found}`);
    else sources.push(...found);
  }
  const loaded: Loaded[] = [];
  // Two entries may name one file.
  for (const source of new Map(sources.map((each) => [each.specifier, each])).values()) {
    const found = await typesOf(source, { folder, loadMs });
    if (typeof found === 'string') problems.push(`${source.shown}: ${found}`);
    else loaded.push(...found);
  }
  const types = [...new Map(loaded.map((each) => [each.type, each])).values()];
  problems.push(...typeProblems(types));
  if (problems.length > 0) throw configError(problems.map((problem) => `${SETTING}: ${problem}`));
  return types.map(({ type }) => type);
}

/** The modules that an entry names, or what is wrong with it. */
async function sourcesOf(entry: string, folder: string): Promise<Source[] | string> {
  if (!isFile(entry)) {
    return PACKAGE.test(entry)
      ? [{ entry, specifier: entry, shown: entry }]
      : 'is neither a path nor the name of a package';
  }
  const files = isPattern(entry) ? await filesMatching(entry, folder) : [entry];
  if (files.length === 0) return 'matches no file';
  const paths = files.map((file) => path.resolve(folder, file));
  for (const file of paths) {
    const state = await stat(file).catch(() => undefined);
    if (!state?.isFile()) return isPattern(entry) ? `: ${file} is not a file` : 'is not a file';
  }
  return paths.map((file) => ({ entry, specifier: pathToFileURL(file).href, shown: file }));
}

async function filesMatching(pattern: string, folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob(pattern, { cwd: folder }))
    if (!NOT_TYPES.test(file)) files.push(file);
  return files.sort();
}

/** The types that a module exports, or why there are none. */
async function typesOf(
  { specifier, shown }: Source,
  { folder, loadMs }: { folder: string; loadMs: number },
): Promise<Loaded[] | string> {
  try {
    const loading: Promise<unknown> = specifier.startsWith('file:')
      ? import(specifier)
      : importFrom(folder, specifier);
    // A module that waits for something at its top level must not keep the process from starting.
    const loaded = await within(loadMs, loading, () => {
      throw new Error(`it was not ready after ${loadMs / 1_000} s`);
    });
    const types = Object.values(loaded as Record<string, unknown>)
      .flat()
      .filter(isModuleJobType);
    return types.length > 0
      ? types.map((type) => ({ type, from: shown }))
      : 'exports no job type; call jobType of holdfast/job-type and export what it returns';
  } catch (error) {
    return `cannot be loaded: ${firstLine(error)}`;
  }
}

const isModuleJobType = (value: unknown): value is ModuleJobType =>
  typeof value === 'object' && value !== null && JOB_TYPE_MARK in value;

/** What is wrong with the types: each by itself, and names that several have. */
function typeProblems(loaded: readonly Loaded[]): string[] {
  const invalid = loaded.flatMap(({ type, from }) =>
    definitionProblems(type[JOB_TYPE_MARK]).map((problem) => `${from}: ${problem}`),
  );
  const byName = Map.groupBy(loaded, ({ type }) => type[JOB_TYPE_MARK]?.name);
  const repeated = [...byName].flatMap(([name, of]) =>
    typeof name === 'string' && of.length > 1
      ? [`${name} is declared ${of.length} times: ${of.map(({ from }) => from).join(', ')}`]
      : [],
  );
  return [...invalid, ...repeated];
}
