import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { createAuditArchiver } from '../../../services/audit/archiver.ts';
import { verifyAudit } from '../../../processes/cli/verifyAudit.ts';
import { createStartArchives } from '../../../services/audit/startArchives.ts';
import type { TestApp } from '../../support/app.ts';
import { runHere } from '../../support/commands.ts';
import { addOldEntries, archiveRow, archivesOf, countUpTo } from '../../support/auditArchives.ts';
import { backupCreator, restorer, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { runArchiveCommand } from '../../support/processes.ts';
import type { Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let folder: string;
withBackups((fixture) => {
  ({ app, root } = fixture);
  ({ folder } = fixture.archives);
});

type AuditList = Page<AuditEntryRecord> & { archived: Record<string, unknown> | null };

const at = (tenant: string) => app.client.as({ actor: 'root', roles: 'platform-admin', tenant });
const list = (tenant: string) => at(tenant).get<AuditList>('/api/audit?limit=200').expect(200);
const archive = (tenant: string, payload: object = {}) =>
  at(tenant)
    .post<JobRecord>('/api/jobs', { type: 'audit.archive', payload }, { prefer: 'wait=50' })
    .expect(201);
const verify = (tenant: string) => app.deps.auditSealer.verify(tenant);
async function problemsOf(tenant: string): Promise<(string | null)[]> {
  const found = [];
  for await (const { problem } of app.deps.backups.auditArchives.verify(tenant))
    found.push(problem);
  return found;
}
async function seal(): Promise<void> {
  while (await app.deps.db('audit_entries').where({ position: null }).first())
    await app.deps.auditSealer.seal();
}

/** The archiver in this process, with an archive store that a test has changed. */
const archiverWith = (changes: object) =>
  createAuditArchiver({
    ...app.deps,
    appVersion: 'test',
    concurrencyLimit: (_, step) => step(),
    archives: { ...app.deps.backups.archives, ...changes },
  });
const toolsOf = (tenantId: string) =>
  ({
    jobId: 'job_test',
    startedAt: new Date(),
    caller: systemCaller(tenantId, 'test'),
    signal: new AbortController().signal,
    log: () => undefined,
  }) as unknown as JobTools;

describe('a job archives old entries', () => {
  test('and the log says where they are; the chain and the archives verify', async () => {
    await addOldEntries(app, 'red', '2020-01', 3);
    await addOldEntries(app, 'red', '2020-02', 2);
    const before = (await list('red')).items.toReversed();
    const job = await archive('red');
    expect(job).toMatchObject({ status: 'succeeded', result: { entries: 5 } });
    await seal();
    const { items, archived } = await list('red');
    expect(items.map(({ action }) => action)).toEqual(
      expect.arrayContaining(['audit.checkpoint', 'audit.archive', 'job.create']),
    );
    expect(items.some(({ id }) => before.some((entry) => entry.id === id))).toBe(false);
    const [row] = await archivesOf(app, 'red');
    expect(archived).toMatchObject({
      id: row?.id,
      tenantId: 'red',
      archive: row?.archive,
      firstPosition: 1,
      position: 5,
      until: '2020-02-01T12:00:01.000Z',
      status: 'completed',
      jobId: job.id,
    });
    expect(await at('blue').get<Page<object>>('/api/audit/archives').expect(200)).toMatchObject({
      items: [],
    });
    expect(await verify('red')).toMatchObject({ from: 5, broken: null });
    const [checked, printed] = await Promise.all([
      runHere(app, verifyAudit, 'red', '--archives'),
      runArchiveCommand(app.env, 'audit', path.join(folder, row?.archive ?? '')),
    ]);
    expect([checked.status, checked.text]).toEqual([
      0,
      expect.stringContaining(`${row?.archive}, positions 1 to 5: intact`),
    ]);
    expect(
      printed.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toEqual(before);
  });

  test('nothing of the current months, and nothing for those without the permission', async () => {
    await at('young').post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
    expect((await archive('young', { olderThanDays: 1 })).result).toEqual({
      archives: [],
      entries: 0,
    });
    const operator = app.client.as({ tenant: 'young' });
    await operator.post('/api/jobs', { type: 'audit.archive', payload: {} }).expect(403);
  });

  test('by itself where retention says so, and not twice a day', async () => {
    const start = createStartArchives(app.deps);
    const { signal } = new AbortController();
    for (const id of ['set', 'unset']) {
      await addOldEntries(app, id, '2020-01', 3);
      await root.post('/api/inventory/tenants', { id, name: id }).expect(201);
    }
    expect(await start(signal)).toBe(0);
    await at('set')
      .put('/api/retention/set', { days: { auditArchive: 30_000 } })
      .expect(200);
    expect(await start(signal)).toBe(0);
    await at('set')
      .put('/api/retention/set', { days: { auditArchive: 400 } })
      .expect(200);
    expect([await start(signal), await start(signal)]).toEqual([1, 0]);
    await eventually(
      () => archivesOf(app, 'set'),
      ([row]) => row?.status === 'completed',
    );
    const { items } = await at('set')
      .get<Page<JobRecord>>('/api/jobs?type=audit.archive')
      .expect(200);
    expect(items).toMatchObject([{ createdBy: 'system', source: { kind: 'system' } }]);
    expect(await archivesOf(app, 'unset')).toEqual([]);
  });

  test('but nothing that a legal hold keeps, nor what follows it in the chain', async () => {
    await addOldEntries(app, 'held', '2020-01', 2);
    await addOldEntries(app, 'held', '2020-01', 1, { type: 'job', id: 'job_held' });
    await addOldEntries(app, 'held', '2020-01', 2);
    const hold = async (body: object) =>
      (
        await at('held')
          .post<{ id: string }>('/api/legal-holds', { reason: 'Case 7', ...body })
          .expect(201)
      ).id;
    const whole = await hold({});
    const ofJob = await hold({ subject: { type: 'job', id: 'job_held' } });
    const release = (id: string) =>
      at('held').post(`/api/legal-holds/${id}/release`, { reason: 'closed' }).expect(200);
    expect((await archive('held')).result).toMatchObject({ entries: 0 });
    await release(whole);
    expect((await archive('held')).result).toMatchObject({ entries: 2 });
    expect((await archive('held')).result).toMatchObject({ entries: 0 });
    await release(ofJob);
    expect((await archive('held')).result).toMatchObject({ entries: 3 });
    expect((await archivesOf(app, 'held')).map(({ position }) => position)).toEqual([2, 5]);
    await seal();
    expect(await verify('held')).toMatchObject({ from: 5, broken: null });
    expect(await problemsOf('held')).toEqual([null, null]);
  });
});

test('a hold on a user keeps nothing in the audit log of another tenant', async () => {
  const user = { type: 'user', id: 'zoe' };
  await addOldEntries(app, 'ours', '2020-01', 2, user);
  await addOldEntries(app, 'theirs', '2020-01', 2, user);
  await at('theirs').post('/api/legal-holds', { reason: 'Case 7', subject: user }).expect(201);
  expect((await archive('ours')).result).toMatchObject({ entries: 2 });
  expect((await archive('theirs')).result).toMatchObject({ entries: 0 });
});

describe('nothing is deleted', () => {
  test.each([
    ['is another one', 'another'],
    ['is damaged', 'damaged'],
    ['is missing', 'missing'],
  ])('when the archive that is read back %s', async (_, how) => {
    const tenant = `tampered-${how}`;
    await addOldEntries(app, tenant, '2020-01', 3);
    const { archives } = app.deps.backups;
    await addOldEntries(app, `other-${how}`, '2020-01', 3);
    await archive(`other-${how}`);
    const [other] = await archivesOf(app, `other-${how}`);
    const read = ({ store, archive: name }: { store: 'folder'; archive: string }) =>
      archives.read({
        store,
        archive:
          how === 'another' ? (other?.archive ?? '') : how === 'missing' ? 'aar_0.hfb' : name,
      });
    const damagedRead = async function* (backup: Parameters<typeof read>[0]) {
      for await (const part of read(backup))
        yield how === 'damaged' && part.kind === 'rows'
          ? { ...part, bytes: Buffer.from(part.bytes.toString().replace('ann', 'bob')) }
          : part;
    };
    const archiver = archiverWith({ read: damagedRead });
    await expect(archiver.archive(400, toolsOf(tenant))).rejects.toThrow();
    expect(await countUpTo(app, tenant, 3)).toBe(3);
    const [row] = await archivesOf(app, tenant);
    expect(row?.status).toBe('writing');
    // The next attempt starts again, and leaves one file.
    expect((await archive(tenant)).result).toMatchObject({ entries: 3 });
    const files = app.deps.backups.archives.listStores()[0]?.list();
    const names: string[] = [];
    for await (const { name } of files ?? []) if (name.startsWith(row?.id ?? '?')) names.push(name);
    expect(names).toEqual([`${row?.id}-2.hfb`]);
  });

  test('when the archive was lost after its checkpoint', async () => {
    const tenant = 'lost-later';
    await addOldEntries(app, tenant, '2020-01', 3);
    const { archives } = app.deps.backups;
    const stop = new AbortController();
    const stopped = archiverWith({
      read: async function* (backup: Parameters<typeof archives.read>[0]) {
        yield* archives.read(backup);
        stop.abort();
      },
    });
    const tools = { ...toolsOf(tenant), signal: stop.signal };
    await expect(stopped.archive(400, tools)).rejects.toThrow();
    const [row] = await archivesOf(app, tenant);
    expect(row?.status).toBe('checkpointed');
    await archives.storeOf({ store: 'folder' }).remove(row?.archive ?? '');
    await seal();
    await expect(archiverWith({}).archive(400, toolsOf(tenant))).rejects.toThrow('not in the');
    expect(await countUpTo(app, tenant, 3)).toBe(3);
  });

  test('when the chain is broken', async () => {
    await addOldEntries(app, 'broken', '2020-01', 3);
    await app.deps.db.transaction(async (trx) => {
      await trx.raw('ALTER TABLE audit_entries DISABLE TRIGGER USER');
      await trx('audit_entries')
        .where({ tenant_id: 'broken', position: 2 })
        .update({ actor_id: 'another-actor' });
      await trx.raw('ALTER TABLE audit_entries ENABLE TRIGGER USER');
    });
    expect(await archive('broken')).toMatchObject({
      status: 'failed',
      error: { code: 'audit_chain_broken' },
    });
    expect(await countUpTo(app, 'broken', 3)).toBe(3);
  });
});

describe('SQL deletes entries', () => {
  const row = (tenantId: string, changes: object = {}) => archiveRow(app, tenantId, changes);
  type Forged = ReturnType<typeof row>;
  const checkpoint = (archived: Forged, changes: object = {}, entry: object = {}) => ({
    id: app.deps.ids.next('aud'),
    tenant_id: archived.tenant_id,
    actor_id: 'eve',
    via: 'gateway',
    action: 'audit.checkpoint',
    outcome: 'done',
    subject_type: 'audit-archive',
    subject_id: archived.id,
    request_id: 'req',
    at: new Date(),
    after: JSON.stringify({
      tenantId: archived.tenant_id,
      position: archived.position,
      hash: archived.hash.toString('hex'),
      archive: archived.archive,
      ...changes,
    }),
    ...entry,
  });
  const deleteArchived = (id: string) =>
    app.deps.db.raw('SELECT delete_archived_audit_entries(?, 100)', [id]);
  const denied = { code: '42501' };

  test('up to the checkpoint of their tenant, through the function only', async () => {
    await addOldEntries(app, 'sql', '2020-01', 3);
    await addOldEntries(app, 'sql-other', '2020-01', 3);
    const deletes = [];
    const archiver = archiverWith({});
    await archiver.archive(400, toolsOf('sql'));
    const [done] = await archivesOf(app, 'sql');
    await seal();
    const { db } = app.deps;
    for (const where of [
      { tenant_id: 'sql' },
      { tenant_id: 'sql', position: 4 },
      { tenant_id: 'sql-other', position: 1 },
    ])
      for (const door of ['', done?.id ?? ''])
        deletes.push(
          db.transaction(async (trx) => {
            await trx.raw(`SELECT set_config('holdfast.audit_archive', ?, true)`, [door]);
            await trx('audit_entries').where(where).del();
          }),
        );
    for (const outcome of await Promise.allSettled(deletes))
      expect(outcome).toMatchObject({ status: 'rejected', reason: denied });
    await expect(
      db('audit_archives').where({ id: done?.id }).update({ position: 9 }),
    ).rejects.toMatchObject(denied);
    await expect(db('audit_archives').where({ id: done?.id }).del()).rejects.toMatchObject(denied);
  });

  test('not yet while the checkpoint is not sealed; the chain verifies from its beginning', async () => {
    const { db } = app.deps;
    await addOldEntries(app, 'unsealed', '2020-01', 3);
    const archived = row('unsealed', {
      hash: (await db('audit_entries').where({ tenant_id: 'unsealed', position: 2 }).first()).hash,
    });
    await db('audit_archives').insert(archived);
    expect(await verify('unsealed')).toMatchObject({ from: 0, broken: null });
    await expect(deleteArchived(archived.id)).rejects.toMatchObject(denied);
    await db('audit_entries').insert(checkpoint(archived));
    await seal();
    expect(await verify('unsealed')).toMatchObject({ from: 2, broken: null });
  });

  test('not for a checkpoint that is forged, of another tenant, or not in the chain', async () => {
    const { db } = app.deps;
    await addOldEntries(app, 'forged', '2020-01', 4);
    const hashAt = async (position: number): Promise<Buffer> =>
      (await db('audit_entries').where({ tenant_id: 'forged', position }).first()).hash;
    const attempts: [name: string, archived: Forged, entry: object | null, sealed: boolean][] = [];
    const honest = row('forged', { hash: await hashAt(2) });
    attempts.push(
      ['no entry', row('forged'), null, true],
      ['another hash in the chain', honest, checkpoint(honest, { hash: 'ff' }), true],
    );
    const wrong = row('forged');
    attempts.push(['another hash than the chain', wrong, checkpoint(wrong), true]);
    const further = row('forged', { hash: await hashAt(2) });
    attempts.push(['another position', further, checkpoint(further, { position: 1 }), true]);
    const foreign = row('forged', { hash: await hashAt(2) });
    attempts.push([
      'the entry of another tenant',
      foreign,
      checkpoint(foreign, {}, { tenant_id: 'elsewhere' }),
      true,
    ]);
    const unsealed = row('forged', { hash: await hashAt(2) });
    attempts.push(['an entry outside the chain', unsealed, checkpoint(unsealed), false]);
    const gap = row('forged', { hash: await hashAt(3), first_position: 3, position: 3 });
    attempts.push(['a part that follows no archive', gap, checkpoint(gap), true]);
    for (const [name, archived, entry, isSealed] of attempts) {
      // Each in a transaction that is rolled back: one forgery must not help the next.
      const refused = db.transaction(async (trx) => {
        await trx('audit_archives').insert(archived);
        if (entry)
          await trx('audit_entries').insert(
            isSealed ? { ...entry, position: 1_000, hash: randomBytes(32) } : entry,
          );
        await trx.raw('SELECT delete_archived_audit_entries(?, 100)', [archived.id]);
      });
      await expect(refused.then(() => name)).rejects.toMatchObject(denied);
    }
    expect(await countUpTo(app, 'forged', 4)).toBe(4);
    await expect(deleteArchived('aar_none')).rejects.toMatchObject(denied);
  });
});

test('a restore does not bring archived entries back, and the chain still verifies', async () => {
  await addOldEntries(app, 'restored', '2020-01', 3);
  const request = { mode: 'partial', sections: ['audit'] };
  const backup = await backupCreator(() => root)(request);
  await archive('restored');
  await restorer(() => root)({ backupId: backup.id });
  expect(await countUpTo(app, 'restored', 3)).toBe(0);
  await seal();
  expect(await verify('restored')).toMatchObject({ from: 3, broken: null });
  const later = await backupCreator(() => root)(request);
  await restorer(() => root)({ backupId: later.id });
  expect(await verify('restored')).toMatchObject({ broken: null });
  expect(await archivesOf(app, 'restored')).toMatchObject([{ status: 'completed' }]);
});

test('a restore does not add an archive that was being written: another job may have proven it', async () => {
  const { db } = app.deps;
  const unfinished = { status: 'writing', checkpoint_at: null, size_bytes: null };
  const lost = archiveRow(app, 'unproven', unfinished);
  await db('audit_archives').insert(lost);
  const backup = await backupCreator(() => root)({ mode: 'partial', sections: ['audit'] });
  await db('audit_archives').where({ id: lost.id }).del();
  const present = archiveRow(app, 'unproven', unfinished);
  await db('audit_archives').insert(present);
  await restorer(() => root)({ backupId: backup.id });
  expect(await archivesOf(app, 'unproven')).toMatchObject([{ id: present.id }]);
});

test('verification reports a checkpoint that the chain does not have, and a lost archive', async () => {
  await addOldEntries(app, 'lost', '2020-01', 3);
  await archive('lost');
  await seal();
  const [row] = await archivesOf(app, 'lost');
  await app.deps.backups.archives.storeOf({ store: 'folder' }).remove(row?.archive ?? '');
  expect(await problemsOf('lost')).toEqual([expect.stringContaining('not in the backup folder')]);
  await app.deps.db.transaction(async (trx) => {
    await trx.raw('ALTER TABLE audit_entries DISABLE TRIGGER USER');
    await trx('audit_entries')
      .where({ tenant_id: 'lost', action: 'audit.checkpoint' })
      .update({ action: 'job.create' });
    await trx.raw('ALTER TABLE audit_entries ENABLE TRIGGER USER');
  });
  expect(await verify('lost')).toMatchObject({ from: 3, broken: { position: 3, id: null } });
});
