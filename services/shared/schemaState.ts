import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from '../../db/core/knex.ts';
import type { Migrations } from '../../db/core/migration.ts';
import { readSchemaFit, type SchemaFit } from '../../db/core/schemaFit.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { within } from '../../platform/within.ts';

export type SchemaState = ReturnType<typeof createSchemaState>;

/** A contract step has made the schema too new for this version. */
export class SchemaTooNew extends Error {}

type Fit = 'current' | 'outdated' | 'too_new';

type Deps = {
  db: Knex;
  log: Log;
  /** Those of this version; others in tests. */
  migrations?: Migrations;
  intervalMs?: number;
};

/** How often a process checks whether the schema that it waits for is there. */
const INTERVAL_MS = 1_000;

/** How often a running process checks whether it has become too old. */
const WATCH_MS = 30_000;

/** How long requests wait for the first check of a process that has just started. */
const FIRST_CHECK_MS = 1_000;

/** While a process waits it says so this often. */
const REPEAT_LOG_MS = 60_000;

const fitOf = ({ pending, refusedBy }: SchemaFit): Fit => {
  if (refusedBy) return 'too_new';
  return pending.length > 0 ? 'outdated' : 'current';
};

/** The error of a version that a contract step has made too old. */
export const schemaTooNew = ({
  name,
  needs,
  reason,
}: NonNullable<SchemaFit['refusedBy']>): SchemaTooNew =>
  new SchemaTooNew(
    `This version of Holdfast is too old for the database schema: ${name} has removed what it uses (${reason}). ` +
      `Start a version that has the migration ${needs}.`,
  );

/**
 * Whether the schema fits this version of Holdfast. A process whose schema is not there yet waits with its
 * work. Migrations of a release only add, so an older process goes on when the schema becomes newer, until a
 * contract step removes what it uses.
 */
export function createSchemaState({ db, log, migrations, intervalMs = INTERVAL_MS }: Deps) {
  const checked = Promise.withResolvers<undefined>();
  /** Until the first answer of the database, a process that waits for its schema is closed. */
  let isWaiting = false;
  let last: Fit | undefined;

  const isClosed = (): boolean => (last === undefined ? isWaiting : last !== 'current');

  const read = async (): Promise<SchemaFit> => {
    const fit = await readSchemaFit(db, migrations);
    last = fitOf(fit);
    checked.resolve(undefined);
    return fit;
  };

  function createReport() {
    let reported: string | undefined;
    let reportedAt = -Infinity;
    return ({ pending }: SchemaFit) => {
      const newest = pending.at(-1);
      if (newest === reported && performance.now() - reportedAt < REPEAT_LOG_MS) return;
      [reported, reportedAt] = [newest, performance.now()];
      log.warn(
        { migrations: pending.length, newest },
        'waiting for the database schema; run the migrations of this version (npm run migrate -- up, in the image holdfast migrate up)',
      );
    };
  }

  return {
    /**
     * Reads how the schema fits. One that fits is not read again here: it stays so, but for contract
     * steps, which `watch` finds. Errors: those of the database.
     */
    async check(): Promise<Fit> {
      return last === 'current' ? last : fitOf(await read());
    },

    /**
     * False while requests must not be served: they would meet a schema that they do not know. Requests to a
     * process that has just started wait a moment for the answer.
     */
    async isOpen(): Promise<boolean> {
      if (isWaiting && last === undefined) await within(FIRST_CHECK_MS, checked.promise);
      return !isClosed();
    },

    isClosed,

    /**
     * Resolves when the schema fits; waits for the database, too. Errors: `SchemaTooNew`, the reason of
     * `signal`.
     */
    async untilCurrent(signal: AbortSignal): Promise<void> {
      isWaiting = true;
      const report = createReport();
      for (;;) {
        signal.throwIfAborted();
        const fit = await read().catch((error: unknown) => {
          // The readiness of the process warns of it.
          log.debug({ err: error }, 'the database schema could not be read');
        });
        checked.resolve(undefined);
        if (fit && fitOf(fit) === 'current') return;
        if (fit?.refusedBy) throw schemaTooNew(fit.refusedBy);
        if (fit) report(fit);
        await sleep(intervalMs, undefined, { signal });
      }
    },

    /** Calls `onTooNew` once, when a contract step has made this process too old. Returns how to stop. */
    watch(onTooNew: (error: SchemaTooNew) => void, everyMs = WATCH_MS): () => Promise<void> {
      let isFound = false;
      const loop = createLoop({ name: 'schema', everyMs, log }, async () => {
        const fit = isFound ? undefined : await read().catch(() => undefined);
        if (!fit?.refusedBy) return false;
        isFound = true;
        onTooNew(schemaTooNew(fit.refusedBy));
        return false;
      });
      loop.start();
      return loop.stop;
    },
  };
}
