import type { Log } from '../platform/log.ts';
import { missingFor } from './command/capabilities.ts';
import { loadDeclaration, loadFolders, type DeclaredType } from './declaration/load.ts';

export type Catalog = ReturnType<typeof createCatalog>;

type Options = {
  folders: readonly string[];
  pools: readonly string[];
  secretsFolder: string | undefined;
  wrapper: readonly string[];
  /** Why this machine cannot run any command now; undefined if it can. */
  obstacle(): Promise<string | undefined>;
  log: Log;
};

/** The types that a runner can run, as they are on the disk. */
export function createCatalog({ folders, pools, obstacle, log, ...host }: Options) {
  let types = new Map<string, DeclaredType>();
  let loadedBefore: readonly DeclaredType[] = [];
  /** What was logged about each file, so that it is logged once. */
  let complaints = new Map<string, string>();
  let knownObstacle: string | undefined;

  /** Why a type of these folders is not announced; empty if it is. */
  async function problemsOf(type: DeclaredType): Promise<string[]> {
    const { pool } = type.definition;
    if (!pools.includes(pool)) return [`This runner does not serve the pool ${pool}`];
    return missingFor(type, host);
  }

  /** True if this machine can run commands. What keeps it from that is logged once. */
  async function canRun(): Promise<boolean> {
    const reason = await obstacle();
    if (reason !== undefined && reason !== knownObstacle)
      log.error({ reason }, 'no job type is announced: no run can be prepared');
    knownObstacle = reason;
    return reason === undefined;
  }

  return {
    /** Reads the folders again. What cannot be used is logged. */
    async reload(): Promise<void> {
      if (!(await canRun())) {
        types = new Map();
        return;
      }
      const loaded = await loadFolders(folders, loadedBefore);
      loadedBefore = loaded.types;
      const usable = new Map<string, DeclaredType>();
      const found = new Map(
        loaded.refusals.map(({ file, problems }) => [file, problems.join('\n')]),
      );
      for (const type of loaded.types) {
        const problems = await problemsOf(type);
        if (problems.length === 0) usable.set(type.definition.name, type);
        else found.set(type.file, problems.join('\n'));
      }
      for (const [file, text] of found)
        if (complaints.get(file) !== text)
          log.warn({ file, problems: text.split('\n') }, 'a job type is not announced');
      complaints = found;
      types = usable;
    },

    ofPool: (pool: string): DeclaredType[] =>
      [...types.values()].filter(({ definition }) => definition.pool === pool),

    /** The type with its code as it is now. Undefined if it is not known, or cannot be used any more. */
    async current(name: string): Promise<DeclaredType | undefined> {
      const known = types.get(name);
      if (!known) return undefined;
      const loaded = await loadDeclaration(known.file, known).catch(() => undefined);
      return loaded?.definition.name === name && (await problemsOf(loaded)).length === 0
        ? loaded
        : undefined;
    },
  };
}
