import { expect, test } from '@jest/globals';
import type { TestApp } from '../../support/app.ts';
import { backUp, withBackups, type archiveFolder } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { furnish } from '../../support/estate.ts';
import { eventually } from '../../support/eventually.ts';
import { making } from '../../support/inventory.ts';

let archives: Awaited<ReturnType<typeof archiveFolder>>;
let app: TestApp;
let root: TestClient;
withBackups(async (there) => {
  ({ app, root, archives } = there);
  await furnish(app);
});

const take = backUp(() => root);
const make = making(() => root);
const restore = (body: object) =>
  root.post('/api/backup/restore', { safetyBackup: false, ...body }, { prefer: 'wait=50' });

test('writers go on while a restore swaps: each write is before it or after it, and those before are counted', async () => {
  const backup = await take();
  const vrf = await make('vrfs', { name: 'busy' });
  const own = await make('sites', { name: 'changing', description: '0' });
  const withOwn = await take();
  let writing = true;
  const answers: { status: number; id: string | null }[] = [];
  const writer = async (n: number) => {
    for (let i = 0; writing; i++) {
      const [resource, record] =
        i % 2 === 0
          ? ['sites', { name: `w${n}-${i}` }]
          : ['prefixes', { cidr: `10.${n}.${i % 256}.0/24` }];
      const { status, body } = await root.post(`/api/inventory/${resource}`, record);
      answers.push({ status, id: status === 201 ? (body.id as string) : null });
    }
  };
  const changer = async () => {
    for (let i = 1; writing; i++)
      await root.put(`/api/inventory/sites/${own.id as string}`, { description: `${i}` });
  };
  const writers = [...Array.from({ length: 8 }, (_, n) => writer(n)), changer()];
  await eventually(
    () => answers.length,
    (count) => count > 50,
  );
  const restored = await restore({ backupId: withOwn.id });
  const during = answers.length;
  await eventually(
    () => answers.length,
    (count) => count > during + 20,
  );
  writing = false;
  await Promise.all(writers);
  expect([restored.body.status, restored.body.error]).toEqual(['succeeded', null]);
  // Nobody is told that something broke: a write is made, or could not wait.
  expect(
    [...new Set(answers.map(({ status }) => status))].filter(
      (status) => ![201, 409, 503].includes(status),
    ),
  ).toEqual([]);
  const made = answers.flatMap(({ id }) => id ?? []);
  const there = new Set<string>([
    ...(await app.deps.db('sites').pluck('id')),
    ...(await app.deps.db('prefixes').pluck('id')),
  ]);
  const taken = made.filter((id) => !there.has(id));
  expect([taken.length > 20, made.length - taken.length > 10]).toEqual([true, true]);
  expect(restored.body.outcome.deleted).toBe(taken.length);
  // What is there was written after everything that was taken away.
  const at = async (ids: readonly string[]) =>
    (
      await app.deps
        .db('audit_entries')
        .whereIn('subject_id', [...ids])
        .whereLike('action', '%.create')
        .orderBy('at')
        .pluck('at')
    ).map((date: Date) => date.getTime());
  const [gone, left] = [await at(taken), await at(made.filter((id) => there.has(id)))];
  expect((gone.at(-1) ?? 0) - (left[0] ?? 0)).toBeLessThan(3_000);
  expect((await root.get(`/api/inventory/vrfs/${vrf.id as string}`)).status).toBe(200);
  await restore({ backupId: backup.id });
}, 120_000);

test('two restores at once take their turns; a backup that is read is not deleted', async () => {
  const [one, other] = [await take({ label: 'one' }), await take({ label: 'other' })];
  await make('sites', { name: 'between' });
  const answers = await Promise.all([
    restore({ backupId: one.id }),
    restore({ backupId: other.id }),
    restore({ backupId: one.id }),
  ]);
  expect(answers.map(({ body }) => [body.status, body.error])).toEqual(
    Array.from({ length: 3 }, () => ['succeeded', null]),
  );
  expect(answers.reduce((sum, { body }) => sum + Number(body.outcome.deleted), 0)).toBe(1);
  const pending = restore({ backupId: one.id });
  const runs = async () =>
    app.deps
      .db('restore_runs AS r')
      .join('jobs AS j', 'j.id', 'r.job_id')
      .where({ 'r.backup_id': one.id })
      .whereIn('j.status', ['queued', 'running']);
  await eventually(runs, (found) => found.length > 0);
  const refused = await root.delete(`/api/backup/${one.id as string}`);
  expect([refused.status, refused.body.code, (await pending).body.status]).toEqual([
    409,
    'backup_busy',
    'succeeded',
  ]);
  expect((await root.delete(`/api/backup/${one.id as string}`)).status).toBe(204);
});

test('a snapshot that goes on after another attempt has made the backup writes nothing down and takes nothing away', async () => {
  const { db, backups } = app.deps;
  const tools = (jobId: string) => ({
    jobId,
    caller: undefined as never,
    source: { kind: 'api' as const, id: null },
    payload: {},
    signal: new AbortController().signal,
    log: () => undefined,
    progress: () => undefined,
  });
  const release = Promise.withResolvers<undefined>();
  const held = db.transaction(async (trx) => {
    await trx.raw('LOCK TABLE cables IN ACCESS EXCLUSIVE MODE');
    await release.promise;
  });
  const { body } = await root.post('/api/backup/create', { label: 'twice' });
  await eventually(
    () => archives.files(),
    (files) => files.some((file) => file.startsWith(`${body.archive as string}.part`)),
  );
  // Taken for dead: another attempt makes the backup.
  const late = backups.runs.backups.snapshot(body.id, tools(body.jobId)).then(
    () => 'written',
    (error: unknown) => (error as { code?: string }).code,
  );
  await eventually(
    () => archives.files(),
    (files) =>
      files.filter((file) => file.startsWith(`${body.archive as string}.part`)).length === 2,
  );
  release.resolve(undefined);
  await held;
  const outcomes = [await late];
  await eventually(
    async () => (await root.get(`/api/backup/${body.id as string}`)).body.status,
    (status) => ['completed', 'failed'].includes(status),
  );
  // Whoever began last has it; the other one is told so, and again later, when it is made.
  outcomes.push(
    await backups.runs.backups.snapshot(body.id, tools(body.jobId)).then(
      () => 'written',
      (error: unknown) => (error as { code?: string }).code,
    ),
  );
  const record = (await root.get(`/api/backup/${body.id as string}`)).body;
  expect(outcomes[1]).toBe('backup_ended');
  if (record.status === 'completed') expect(await archives.files()).toContain(record.archive);
  expect((await archives.files()).filter((file) => file.includes('.part-'))).toEqual([]);
});

test('a series keeps what its rule says, and what is read meanwhile', async () => {
  const made: any[] = [];
  for (let i = 0; i < 3; i++)
    made.push(
      await take({ label: 'series', keep: { last: 2 }, mode: 'partial', sections: ['settings'] }),
    );
  await take({
    label: 'another series',
    keep: { last: 1 },
    mode: 'partial',
    sections: ['settings'],
  });
  const left = await eventually(
    async () =>
      (await root.get('/api/backup?label=series')).body.backups.map(({ id }: any) => id as string),
    (ids) => ids.length === 2,
  );
  expect(left).toEqual([made[2].id, made[1].id]);
  await eventually(
    () => archives.files(),
    (files) => !files.includes(made[0].archive),
  );
  const entries = (await root.get(`/api/audit?subjectId=${made[0].id as string}`)).body.items.map(
    ({ action }: any) => action as string,
  );
  expect(entries).toEqual(expect.arrayContaining(['backup.delete', 'backup.removed']));
});
