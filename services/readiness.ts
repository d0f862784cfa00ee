import { pendingMigrations } from '../db/core/migrate.ts';
import type { Knex } from '../db/core/knex.ts';

export type Readiness = ReturnType<typeof createReadiness>;

export type PartState = 'ready' | 'away' | 'starting' | 'schema_outdated';
export type Report = {
  status: 'ready' | 'degraded' | 'unready';
  parts: { postgres: PartState; temporal: PartState; worker?: PartState };
};

type Deps = {
  db: Knex;
  temporal: { check(deadlineMs: number): Promise<void> };
  worker: { isRunning(): boolean } | undefined;
  /** Without Temporal a worker has nothing to do; an API still takes every request. */
  workerIsVital: boolean;
};

const CHECK_MS = 1_000;

/** Probes come from several sides; they share an answer for this long. */
const REMEMBER_MS = 250;

/** Says which part of the product is missing. */
export function createReadiness({ db, temporal, worker, workerIsVital }: Deps) {
  let schemaIsCurrent = false;
  let last: { at: number; report: Promise<Report> } | undefined;

  async function postgres(): Promise<PartState> {
    const answered = await within(CHECK_MS, db.raw('SELECT 1'));
    if (!answered) return 'away';
    // A schema only ever moves forward under a running process: found current once, it stays so.
    schemaIsCurrent ||= (await pendingMigrations(db)).length === 0;
    return schemaIsCurrent ? 'ready' : 'schema_outdated';
  }

  async function look(): Promise<Report> {
    const [postgresState, temporalThere] = await Promise.all([
      postgres().catch((): PartState => 'away'),
      within(CHECK_MS, temporal.check(CHECK_MS)),
    ]);
    const parts: Report['parts'] = {
      postgres: postgresState,
      temporal: temporalThere ? 'ready' : 'away',
    };
    if (worker) parts.worker = worker.isRunning() && temporalThere ? 'ready' : 'starting';
    const missing = Object.values(parts).some((part) => part !== 'ready');
    const vital = postgresState !== 'ready' || (workerIsVital && missing);
    return { status: vital ? 'unready' : missing ? 'degraded' : 'ready', parts };
  }

  return {
    report(): Promise<Report> {
      if (!last || Date.now() - last.at > REMEMBER_MS) last = { at: Date.now(), report: look() };
      return last.report;
    },
  };
}

const within = (ms: number, work: PromiseLike<unknown>): Promise<boolean> =>
  Promise.race([
    Promise.resolve(work).then(
      () => true,
      () => false,
    ),
    new Promise<boolean>((resolve) => setTimeout(resolve, ms, false).unref()),
  ]);
