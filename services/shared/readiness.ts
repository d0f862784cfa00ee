import { ping, type Knex } from '../../db/core/knex.ts';
import { APP_VERSION } from '../../platform/version.ts';
import type { SchemaState } from './schemaState.ts';

export type Readiness = ReturnType<typeof createReadiness>;

export type ComponentState =
  'ready' | 'unavailable' | 'starting' | 'schema_outdated' | 'schema_too_new';
export type ReadinessReport = {
  status: 'ready' | 'degraded' | 'unready';
  /** Of this process: in a rolling upgrade, processes differ. */
  version: string;
  components: { postgres: ComponentState; temporal: ComponentState; worker?: ComponentState };
};

type Deps = {
  db: Knex;
  schema: Pick<SchemaState, 'check'>;
  temporal: { check(deadlineMs: number): Promise<void> };
  worker: { isRunning(): boolean } | undefined;
  /** True for processes that only run a worker: without Temporal they cannot do anything. */
  workerRequired: boolean;
};

const CHECK_TIMEOUT_MS = 1_000;

/** Probes within this time share one report. */
const CACHE_MS = 250;

/** Reports which components of the process are ready. */
export function createReadiness({ db, schema, temporal, worker, workerRequired }: Deps) {
  let last: { at: number; report: Promise<ReadinessReport> } | undefined;

  async function checkPostgres(): Promise<ComponentState> {
    const reachable = await succeedsWithin(CHECK_TIMEOUT_MS, ping(db));
    if (!reachable) return 'unavailable';
    const fit = await schema.check();
    return fit === 'current' ? 'ready' : `schema_${fit}`;
  }

  async function checkComponents(): Promise<ReadinessReport> {
    const [postgresState, temporalReachable] = await Promise.all([
      checkPostgres().catch((): ComponentState => 'unavailable'),
      succeedsWithin(CHECK_TIMEOUT_MS, temporal.check(CHECK_TIMEOUT_MS)),
    ]);
    const components: ReadinessReport['components'] = {
      postgres: postgresState,
      temporal: temporalReachable ? 'ready' : 'unavailable',
    };
    if (worker) components.worker = worker.isRunning() && temporalReachable ? 'ready' : 'starting';
    const missing = Object.values(components).some((state) => state !== 'ready');
    const unready = postgresState !== 'ready' || (workerRequired && missing);
    const status = unready ? 'unready' : missing ? 'degraded' : 'ready';
    return { status, version: APP_VERSION, components };
  }

  return {
    report(): Promise<ReadinessReport> {
      if (!last || Date.now() - last.at > CACHE_MS)
        last = { at: Date.now(), report: checkComponents() };
      return last.report;
    },
  };
}

const succeedsWithin = (ms: number, work: PromiseLike<unknown>): Promise<boolean> =>
  Promise.race([
    Promise.resolve(work).then(
      () => true,
      () => false,
    ),
    new Promise<boolean>((resolve) => setTimeout(resolve, ms, false).unref()),
  ]);
