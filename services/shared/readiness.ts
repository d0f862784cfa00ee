import { ping, type Knex } from '../../db/core/knex.ts';
import type { Log } from '../../platform/log.ts';
import { createLoop } from '../../platform/loop.ts';
import { APP_VERSION } from '../../platform/version.ts';
import { within } from '../../platform/within.ts';
import type { SchemaState } from './schemaState.ts';

export type Readiness = ReturnType<typeof createReadiness>;

export type ComponentState =
  'ready' | 'unavailable' | 'starting' | 'schema_outdated' | 'schema_too_new';
export type ReadinessReport = {
  status: 'ready' | 'degraded' | 'unready';
  /** The version of this process: in a rolling upgrade, processes differ. */
  version: string;
  /** True after the signal to stop: new requests belong to other processes. */
  stopping?: true;
  components: { postgres: ComponentState; temporal: ComponentState; worker?: ComponentState };
};

type Deps = {
  db: Knex;
  schema: Pick<SchemaState, 'check' | 'isClosed'>;
  temporal: { check(deadlineMs: number): Promise<void> };
  worker: { isRunning(): boolean } | undefined;
  /** True for processes that only run a worker: without Temporal they cannot do anything. */
  workerRequired: boolean;
  log: Log;
};

const CHECK_TIMEOUT_MS = 1_000;

/** Pause between two rounds: while the process is ready, and while it is not. */
const INTERVALS_MS = { ready: 1_000, missing: 250 };

/** Checks in the background which components of the process are ready. Probes never ask the database. */
export function createReadiness({ db, schema, temporal, worker, workerRequired, log }: Deps) {
  let postgres: ComponentState = 'starting';
  let temporalState: ComponentState = 'starting';
  let isStopping = false;
  let wasLate = false;

  /** Errors: why PostgreSQL cannot be used. */
  async function checkPostgres(): Promise<ComponentState> {
    const isLate = await within(
      CHECK_TIMEOUT_MS,
      ping(db).then(() => false),
      () => true,
    );
    // One late answer of a database that was there may be a busy moment.
    const isLateOnce = isLate && !wasLate;
    wasLate = isLate;
    if (isLateOnce && postgres === 'ready') return postgres;
    if (isLate) throw new Error(`No answer within ${CHECK_TIMEOUT_MS} ms`);
    const fit = await schema.check();
    return fit === 'current' ? 'ready' : `schema_${fit}`;
  }

  function report(): ReadinessReport {
    const components: ReadinessReport['components'] = { postgres, temporal: temporalState };
    if (worker)
      components.worker = worker.isRunning() && temporalState === 'ready' ? 'ready' : 'starting';
    const missing = Object.values(components).some((state) => state !== 'ready');
    const unready = isStopping || postgres !== 'ready' || (workerRequired && missing);
    return {
      status: unready ? 'unready' : missing ? 'degraded' : 'ready',
      version: APP_VERSION,
      ...(isStopping && { stopping: true }),
      components,
    };
  }

  async function round(): Promise<number> {
    const [postgresState, isConnected] = await Promise.all([
      checkPostgres().catch((error: unknown): ComponentState => {
        // This check runs in every process from its start on, unlike other code that needs PostgreSQL.
        log.warn({ err: error }, 'PostgreSQL cannot be used');
        return 'unavailable';
      }),
      within(
        CHECK_TIMEOUT_MS,
        temporal.check(CHECK_TIMEOUT_MS).then(() => true),
      ).catch(() => false),
    ]);
    [postgres, temporalState] = [postgresState, isConnected ? 'ready' : 'unavailable'];
    return INTERVALS_MS[report().status === 'ready' ? 'ready' : 'missing'];
  }

  const loop = createLoop({ name: 'readiness', everyMs: INTERVALS_MS.ready, log }, round);

  return {
    /** What the last round found. */
    report,

    /**
     * True while requests belong to this process. Also while PostgreSQL is away: it is for every
     * process, and this one answers 503 with `Retry-After`, which a proxy without servers does not.
     */
    takesRequests: (): boolean =>
      !isStopping && (postgres === 'unavailable' || (postgres === 'ready' && !schema.isClosed())),

    /** True while Temporal answers. */
    isTemporalReady: (): boolean => temporalState === 'ready',

    /** Says that the process stops soon. It serves requests until its listener closes. */
    announceStop: (): void => void (isStopping = true),

    start: loop.start,
    stop: loop.stop,
  };
}
