import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { migrateUp } from '../../../db/core/migrate.ts';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { createLog } from '../../../platform/log.ts';
import { testEnv } from '../../support/app.ts';
import { createClient, type TestClient } from '../../support/client.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { hasLastRelease, LAST_RELEASE, lastReleaseFolder } from '../../support/lastRelease.ts';
import { killAll, startProcess, type TestProcess } from '../../support/processes.ts';
import { startSink, type Sink } from '../../support/sink.ts';

/** How long each phase has load from one client of each version that runs. */
const PHASE_MS = 1_000;

/** Between the requests of one writer: what was accepted must be done soon. */
const PAUSE_MS = 40;

const TENANT = 'red';

const hasHistory = hasLastRelease();
let database: TestDatabase;
let db: Knex;
let sink: Sink;
let lastRelease: string | undefined;
let env: Record<string, string>;

beforeAll(async () => {
  if (!hasHistory) return;
  lastRelease = lastReleaseFolder();
  database = await createDatabase({ empty: true });
  const log = createLog('silent', false);
  db = openDatabase({ url: database.url, poolSize: 3, statementTimeoutMs: 0, log });
  sink = await startSink();
  env = { ...testEnv(database.url), HOLDFAST_HEARTBEAT_MS: '5000' };
});
afterAll(async () => {
  await killAll();
  await sink?.stop();
  await db?.destroy();
  await database?.drop();
});

/** Writes without a pause to several processes in turn. Returns what was accepted. */
function startLoad() {
  const accepted = { jobs: [] as string[], approvals: [] as string[] };
  let clients: TestClient[] = [];
  let isEnding = false;

  async function createJob(client: TestClient, n: number): Promise<void> {
    const request =
      n % 4 === 0
        ? { type: 'core.sleep', payload: { durationMs: 100 } }
        : { type: 'core.echo', payload: { n } };
    const { id } = await client.post<JobRecord>('/api/jobs', request).expect(201);
    accepted.jobs.push(id);
  }

  /** Requested at one process, approved at another, perhaps of the other version. */
  async function approveJob(client: TestClient, other: TestClient, n: number): Promise<void> {
    const { id } = await client
      .post<ApprovalRecord>('/api/workflows', {
        type: 'change',
        title: `request ${n}`,
        payload: {},
        assignedUserIds: [],
        assignedRoleIds: ['approver'],
        jobType: 'core.echo',
        jobPayload: { n },
      })
      .expect(201);
    await other
      .as({ actor: 'bob', roles: 'approver', tenant: TENANT })
      .post(`/api/workflows/${id}/approve`, {})
      .expect(200);
    accepted.approvals.push(id);
  }

  /** Which call of `use` each writer has seen. */
  const seen = [0, 0, 0];
  let uses = 0;

  async function write(writer: number): Promise<void> {
    for (let n = writer; !isEnding; n++) {
      seen[writer] = uses;
      const [client, other] = [clients[n % clients.length], clients[(n + 1) % clients.length]];
      if (!client || !other) await sleep(20);
      else if (n % 5 === 0) await approveJob(client, other, n);
      else await createJob(client, n);
      await sleep(PAUSE_MS);
    }
  }

  const writers = Promise.all([0, 1, 2].map(write));
  // The end of a test reports the failure.
  writers.catch(() => undefined);
  return {
    accepted,
    /** From now on, requests go to these processes. Resolves when none goes to others any more. */
    async use(processes: readonly TestProcess[]): Promise<void> {
      clients = processes.map(({ base }) => createClient(base, { tenant: TENANT }));
      uses += 1;
      await Promise.race([
        writers,
        eventually(
          () => seen,
          (all) => all.every((use) => use === uses),
        ),
      ]);
    },
    async end(): Promise<void> {
      isEnding = true;
      await writers;
    },
  };
}

const isReady = (process: TestProcess) =>
  eventually(
    () => fetch(`${process.base}/readyz`).then(({ status }) => status),
    (status) => status === 200,
  );

/** Starts an API and a worker of one version in one process, ready to work. */
async function startVersion(root?: string): Promise<TestProcess> {
  const started = await startProcess(env, root);
  await isReady(started);
  return started;
}

(hasHistory ? test : test.skip)(
  `an installation is upgraded from ${LAST_RELEASE.version} while it works, and nothing is lost or done twice`,
  async () => {
    const released = Object.keys(MIGRATIONS).indexOf(LAST_RELEASE.migration) + 1;
    const migrations = Object.fromEntries(Object.entries(MIGRATIONS).slice(0, released));
    await migrateUp(db, { migrations });
    const old = await startVersion(lastRelease);
    await createClient(old.base, { tenant: TENANT })
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl: sink.url('/events'),
        eventTypes: ['job.succeeded', 'workflow.approved'],
      })
      .expect(201);
    const load = startLoad();
    await load.use([old]);
    await sleep(PHASE_MS);

    // The schema of this version with processes of the last one.
    await migrateUp(db);
    await sleep(PHASE_MS);

    // Processes of both versions.
    const next = await startVersion();
    await load.use([old, next]);
    await sleep(PHASE_MS);

    // The last process of the old version stops in order, with work in progress.
    await load.use([next]);
    expect(await old.terminate()).toBe(0);
    await sleep(PHASE_MS / 2);
    await load.end();
    await assertAllDone(load.accepted);
  },
  180_000,
);

type Accepted = ReturnType<typeof startLoad>['accepted'];

async function assertAllDone({ jobs, approvals }: Accepted): Promise<void> {
  expect(jobs.length).toBeGreaterThan(20);
  expect(approvals.length).toBeGreaterThan(5);
  await eventually(
    () => db('jobs').whereIn('status', ['queued', 'running']).select('id', 'type', 'status'),
    (unfinished) => unfinished.length === 0,
    { withinMs: 40_000 },
  );
  // An approved request creates its job in its workflow.
  await eventually(
    () => db('approvals').whereNot({ execution: 'succeeded' }).select('id', 'status', 'execution'),
    (unfinished) => unfinished.length === 0,
    { withinMs: 40_000 },
  );
  const ended = await db('jobs').whereIn('type', ['core.echo', 'core.sleep']).select('*');
  expect(ended.filter(({ status }) => status !== 'succeeded')).toEqual([]);
  // Each accepted job and each approved request has one job, and no other exists.
  const sources = ended.filter(({ source_kind }) => source_kind === 'approval');
  expect(sources.map(({ source_id }) => source_id).toSorted()).toEqual(approvals.toSorted());
  const direct = ended.filter(({ source_kind }) => source_kind === 'api');
  expect(direct.map(({ id }) => id).toSorted()).toEqual(jobs.toSorted());
  const closed = await db('approvals').select('status', 'execution');
  expect(closed.every((each) => each.execution === 'succeeded')).toBe(true);
  await assertDelivered(ended.length + approvals.length);
}

/** Each event that the webhook subscribes to has one delivery, and the endpoint has got it once. */
async function assertDelivered(events: number): Promise<void> {
  await eventually(
    () => db('deliveries').whereNot({ status: 'succeeded' }).select('id', 'status'),
    (unfinished) => unfinished.length === 0,
    { withinMs: 20_000 },
  );
  const ids = sink.requestsTo('/events').map(({ headers }) => String(headers['webhook-id']));
  expect(new Set(ids).size).toBe(events);
  expect(ids).toHaveLength(events);
  expect(await db('deliveries').pluck('id')).toHaveLength(events);
}
