import { cp } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { createLog } from '../../../platform/log.ts';
import { testEnv } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import { createClient, type TestClient } from '../../support/client.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import {
  killAll,
  runArchiveCommand,
  runCommand,
  startProcess,
  type TestProcess,
} from '../../support/processes.ts';
import { createMinutelySchedule, minuteFromNow, waitForRuns } from '../../support/schedules.ts';

/**
 * The day the server is lost, by the commands of docs/backups.md: an installation is backed up while it works and then
 * killed. Its archive and its master key are restored to an empty database, with an empty Temporal namespace as far as
 * this installation is concerned: another task queue.
 */
const WAIT = { prefer: 'wait=50' };

const started = new AsyncDisposableStack();
let folders: Awaited<ReturnType<typeof createArchiveFolder>>[];
let databases: TestDatabase[];
beforeAll(async () => {
  folders = await Promise.all([createArchiveFolder(), createArchiveFolder()]);
  for (const each of folders) started.defer(each.remove);
  databases = await Promise.all([createDatabase(), createDatabase({ empty: true })]);
  for (const each of databases) started.defer(each.drop);
  started.defer(killAll);
});
afterAll(() => started.disposeAsync());

const at = <T>(values: readonly T[], index: number): T => {
  const value = values[index];
  if (value === undefined) throw new Error(`there is no value ${index}`);
  return value;
};
const envOf = (index: number): Record<string, string> =>
  testEnv(at(databases, index).url, { ...at(folders, index).env, HOLDFAST_CATCH_UP_SECONDS: '1' });
const clientOf = ({ base }: TestProcess): TestClient =>
  createClient(base, { actor: 'root', roles: 'platform-admin' });

/** Rows of a database whose processes have ended. */
async function withRows<T>(index: number, read: (db: Knex) => Promise<T>): Promise<T> {
  const log = createLog('silent', false);
  const db = openDatabase({
    url: at(databases, index).url,
    poolSize: 1,
    statementTimeoutMs: 0,
    log,
  });
  try {
    return await read(db);
  } finally {
    await db.destroy();
  }
}

const TABLES = ['jobs', 'prefixes', 'schedules', 'events', 'audit_entries'] as const;

/** What the restore adds: it registers the archives in the store, and says in each tenant that it has happened. */
const RECORDED_BY_RESTORE: Partial<Record<(typeof TABLES)[number], [string, string[]]>> = {
  audit_entries: ['action', ['backup.register', 'backup.restore']],
  events: ['type', ['restore.completed']],
};

type Ids = Record<(typeof TABLES)[number], Set<string>>;

const idsOf = (index: number): Promise<Ids> =>
  withRows(index, async (db) => {
    const found = await Promise.all(
      TABLES.map((table) =>
        db(table)
          .whereNotIn(...(RECORDED_BY_RESTORE[table] ?? ['id', []]))
          .pluck('id'),
      ),
    );
    return Object.fromEntries(
      TABLES.map((table, index) => [table, new Set<string>(found[index])]),
    ) as Ids;
  });

/** Creates jobs and prefixes, one after the other, until it is stopped. Resolves to what was answered with 201. */
function startLoad(client: TestClient) {
  const created: string[] = [];
  let isStopped = false;
  const work = async () => {
    for (let index = 0; !isStopped; index++) {
      const job = await client
        .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: { index } })
        .expect(201);
      const prefix = await client
        .post<{ id: string }>('/api/inventory/prefixes', {
          cidr: `10.${Math.floor(index / 256)}.${index % 256}.0/24`,
        })
        .expect(201);
      created.push(job.id, prefix.id);
    }
  };
  const running = work();
  return {
    created,
    async stop() {
      isStopped = true;
      await running;
    },
  };
}

describe('the day the server is lost', () => {
  test('everything from before the backup is there again, and work goes on', async () => {
    const source = await startProcess(envOf(0));
    const old = clientOf(source);
    const schedule = await createMinutelySchedule(old);
    const sleeping = await old
      .post<JobRecord>('/api/jobs', { type: 'core.sleep', payload: { durationMs: 60_000 } })
      .expect(201);
    const load = startLoad(old);
    await eventually(
      () => load.created.length,
      (count) => count > 40,
    );
    const before = [...load.created];
    const backup = await old
      .post<BackupRecord>('/api/backup/create', { mode: 'full', label: 'nightly' }, WAIT)
      .expect(201);
    expect([backup.status, backup.error]).toEqual(['completed', null]);
    await load.stop();
    expect(load.created.length).toBeGreaterThan(before.length);
    await source.kill();

    // Another machine: the archives, the master key and the variables of the store.
    await cp(at(folders, 0).folder, at(folders, 1).folder, { recursive: true });
    const env = envOf(1);
    const list = await runArchiveCommand(env, 'list');
    expect(list.stdout).toContain(backup.archive);
    const shown = await runArchiveCommand(env, 'show', backup.archive);
    expect(shown.stdout).toContain('the archive is complete');
    const restored = await runArchiveCommand(env, 'restore', backup.archive);
    expect([restored.status, restored.stderr]).toEqual([0, '']);
    const again = await runArchiveCommand(env, 'restore', backup.archive);
    expect(again.status).toBe(1);

    const [originals, copies] = [await idsOf(0), await idsOf(1)];
    const isCopied = (id: string) => copies.jobs.has(id) || copies.prefixes.has(id);
    expect(before.filter((id) => !isCopied(id))).toEqual([]);
    for (const table of TABLES) {
      const invented = [...copies[table]].filter((id) => !originals[table].has(id));
      expect([table, invented]).toEqual([table, []]);
    }

    // Three minutes pass before an operator starts it.
    const firstMissed = minuteFromNow(-3);
    await withRows(1, (db) =>
      db('schedules').where({ id: schedule.id }).update({ next_due_at: firstMissed }),
    );
    const target = await startProcess(env);
    const client = clientOf(target);
    const missed = [0, 1, 2].map((minutes) =>
      new Date(firstMissed.getTime() + minutes * 60_000).toISOString(),
    );
    await waitForRuns(
      client,
      schedule.id,
      (found) => missed.every((time) => found.some(({ dueAt }) => dueAt === time)),
      30_000,
    );

    const interrupted = await client.get<JobRecord>(`/api/jobs/${sleeping.id}`).expect(200);
    expect([interrupted.status, interrupted.error?.code]).toEqual(['failed', 'outcome_unknown']);
    const job = await client
      .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, WAIT)
      .expect(201);
    expect(job.status).toBe('succeeded');
    const next = await client
      .post<BackupRecord>('/api/backup/create', { mode: 'full', label: 'nightly' }, WAIT)
      .expect(201);
    expect(next.status).toBe('completed');
    expect(await target.terminate()).toBe(0);
    const audit = await runCommand(env, 'verify-audit');
    expect([audit.status, audit.stderr]).toEqual([0, '']);
  }, 180_000);
});
