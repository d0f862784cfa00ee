import { expect, test } from '@jest/globals';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, restorer, restoreValidator, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { seedEvents, seedJobs, startPurgeRun } from '../../support/retention.ts';

let app: TestApp;
let root: TestClient;
withBackups((fixture) => void ({ app, root } = fixture));

const createBackup = backupCreator(() => root);
const validate = restoreValidator(() => root);
const restore = restorer(() => root);

test('a restore says what was purged and does not bring it back', async () => {
  const { db } = app.deps;
  const tenant = 'red';
  const old = await seedJobs(db, { tenant, days: 450, count: 22, lines: 3 });
  const recent = await seedJobs(db, { tenant, days: 10, count: 2, lines: 3 });
  const events = await seedEvents(db, { tenant, days: 100, count: 4 });
  const backup = await createBackup({ mode: 'partial', sections: ['jobs', 'events'] });

  const run = await startPurgeRun(db);
  await app.deps.purge.run(run, new Date(), Infinity, () => undefined);
  await db('jobs').where({ id: run.jobId }).delete();
  // Two are more than the last 20, with the recent ones; two that were not purged are lost.
  const purged = old.slice(0, 4);
  expect(await db('jobs').whereIn('id', old).pluck('id')).toHaveLength(18);
  await db('job_logs').whereIn('job_id', recent).delete();
  await db('jobs').whereIn('id', recent).delete();

  const { preview, warnings } = await validate({ backupId: backup.id });
  const countsOf = (name: string) => preview.tables.find(({ table }) => table === name);
  expect(countsOf('jobs')).toMatchObject({ created: 2, purged: 4 });
  expect(countsOf('job_logs')).toMatchObject({ created: 6, purged: 66 });
  expect(countsOf('events')).toMatchObject({ purged: 4 });
  expect(warnings.map(({ code, table }) => `${code} ${table}`)).toEqual(
    expect.arrayContaining(['purged_not_restored jobs', 'purged_not_restored events']),
  );

  await restore({ backupId: backup.id });
  const ids = [...old, ...recent];
  expect((await db('jobs').whereIn('id', ids).pluck('id')).sort()).toEqual(
    ids.filter((id) => !purged.includes(id)).sort(),
  );
  expect(await db('job_logs').whereIn('job_id', ids).distinct().pluck('job_id')).toEqual(
    expect.arrayContaining(recent),
  );
  expect(await db('job_logs').whereIn('job_id', old)).toEqual([]);
  expect(await db('events').whereIn('id', events)).toEqual([]);
});
