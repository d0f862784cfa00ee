import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { claimKey } from '../../../db/core/idempotency.ts';
import type { IdempotencyClaim } from '../../../domain/shared/caller.ts';
import { createVault } from '../../../platform/vault.ts';
import { createIdempotency } from '../../../services/shared/idempotency.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { HOUR_MS } from '../../../domain/shared/durations.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { createMinutelySchedule, minuteFromNow } from '../../support/schedules.ts';
import { createUser } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups((fixture) => {
  ({ app, root } = fixture);
});

type Created = { id?: string; jobId?: string };
type Row = { id: string };

/** Sends a request twice with one key; the stored response of the first is lost in between. */
async function expectSameRecord(path: string, body?: object): Promise<void> {
  const headers = { 'idempotency-key': `repeat:${path}` };
  const first = await root.post<Created>(path, body, headers);
  expect([200, 201, 202]).toContain(first.status);
  await app.deps
    .db('idempotency_keys')
    .where({ key: headers['idempotency-key'] })
    .update({ answer: null, lease_until: new Date(0) });
  const again = await root.post<Created>(path, body, headers);
  const identityOf = ({ status, headers: sent, body: { id, jobId } }: typeof first) => [
    status,
    sent.get('location'),
    id ?? jobId,
  ];
  expect(identityOf(again)).toEqual(identityOf(first));
  expect(again.headers.get('idempotent-replayed')).toBe('true');
}

test('a repeated grant, role or provider is answered from the record of the first request', async () => {
  const { id } = await createUser(app);
  await expectSameRecord('/api/rbac/roles', { name: 'Reader', permissions: ['job:read'] });
  await expectSameRecord('/api/rbac/assignments', { userId: id, roleId: 'viewer' });
  await expectSameRecord('/api/auth/providers', {
    kind: 'oidc',
    name: 'Company',
    config: { issuer: 'https://login.example.net', clientId: 'holdfast', clientSecret: 'secret' },
  });
});

test('a repeated record of the inventory is answered from the first one', async () => {
  const pool = await root
    .post<Row>('/api/inventory/prefixes', { cidr: '10.9.0.0/24', allocationMode: 'pool' })
    .expect(201);
  await expectSameRecord('/api/inventory/sites', { name: 'once' });
  await expectSameRecord(`/api/inventory/prefixes/${pool.id}/allocate`, { kind: 'address' });
});

test('a repeated start of a job is answered from the first job', async () => {
  const job = await root
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=30' })
    .expect(201);
  await expectSameRecord(`/api/jobs/${job.id}/retry`);
  const schedule = await createMinutelySchedule(root, { overlapPolicy: 'allowAll' });
  await expectSameRecord(`/api/schedules/${schedule.id}/trigger`);
  await expectSameRecord(`/api/schedules/${schedule.id}/backfill`, {
    since: minuteFromNow(-3).toISOString(),
    until: minuteFromNow(-2).toISOString(),
  });
});

test('a repeated backup or validation is answered from the first one', async () => {
  const backup = await backupCreator(() => root)({ mode: 'partial', sections: ['webhooks'] });
  await expectSameRecord('/api/backup/create', { mode: 'partial', sections: ['webhooks'] });
  await expectSameRecord('/api/backup/restore/validate', { backupId: backup.id });
});

test('no request can be guessed from what is remembered of it', async () => {
  const quick = (path: string, body: object) =>
    createHash('sha256')
      .update(JSON.stringify(['POST', path, JSON.stringify(body)]))
      .digest('hex');
  const job = { type: 'core.echo', payload: { pin: '1234' } };
  const site = { name: 'remembered' };
  for (const [key, path, body] of [
    ['a', '/api/jobs', job],
    ['b', '/api/jobs', job],
    ['c', '/api/inventory/sites', site],
  ] as const)
    await root.post(path, body, { 'idempotency-key': `guess-${key}` }).expect(201);
  const rows = await app.deps
    .db('idempotency_keys')
    .where('key', 'like', 'guess-%')
    .pluck<Buffer[]>('fingerprint');
  const stored = rows.map((fingerprint) => fingerprint.toString('hex'));
  expect(new Set(stored).size).toBe(3);
  expect(stored).not.toContain(quick('/api/jobs', job));
  expect(stored).not.toContain(quick('/api/inventory/sites', site));
});

test('a request is recognised after a change of the master key, and by a slow hash without one', async () => {
  const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
  const { db } = app.deps;
  const caller = { ...systemCaller('platform', 'req_rotated'), actorId: 'alice' };
  let slow = 0;
  const passwords = {
    fingerprint: (text: string) => {
      slow += 1;
      return Promise.resolve(Buffer.from(text));
    },
  };
  const claim = (keys: ReturnType<typeof key>[], name: string, request: string, secret = false) =>
    createIdempotency({ db, vault: createVault(keys), passwords }).claim(
      caller,
      name,
      { current: request },
      secret,
    );
  const [first, next] = [key('first', 1), key('next', 2)];
  expect(await claim([first], 'rotated', 'one')).toMatchObject({ kind: 'work' });
  const again = claim([next, first], 'rotated', 'one');
  await expect(again).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  const other = claim([next, first], 'rotated', 'two');
  await expect(other).rejects.toMatchObject({ code: 'idempotency_mismatch' });
  await db('idempotency_keys')
    .where({ key: 'rotated' })
    .update({ lease_until: new Date(0) });
  expect(await claim([next, first], 'rotated', 'one')).toMatchObject({ kind: 'work' });
  expect(slow).toBe(0);
  await claim([], 'public', 'one');
  expect(slow).toBe(0);
  await claim([], 'secret', 'one', true);
  expect(slow).toBe(1);
});

describe('a request whose key another one has taken over', () => {
  const caller = systemCaller('platform', 'req_keyed');

  /** The claims of two equal requests: the lease of the first has ended before the second. */
  async function claimTwice(key: string): Promise<[IdempotencyClaim, IdempotencyClaim]> {
    const { actorId, tenantId } = caller;
    const claim = async (leaseMs: number) => {
      const claimed = await claimKey(app.deps.db, {
        key: { actorId, tenantId, key },
        fingerprints: [Buffer.from(key)],
        leaseMs,
        keepMs: 24 * HOUR_MS,
      });
      if (claimed === undefined || 'known' in claimed)
        throw new Error('The key is claimed already');
      return claimed.claim;
    };
    return [await claim(-HOUR_MS), await claim(HOUR_MS)];
  }

  const commitWith = (idempotency: IdempotencyClaim, id: string) =>
    app.deps.commit({ ...caller, idempotency }, (work) => {
      work.audit('thing.make', { type: 'thing', id });
      work.result(id);
    });
  const refusal = { code: 'idempotency_in_progress' };
  const committed = (...ids: string[]) =>
    app.deps.db('audit_entries').whereIn('subject_id', ids).pluck<string[]>('subject_id');

  test('commits nothing before the other one', async () => {
    const [lost, current] = await claimTwice('taken-before');
    await expect(commitWith(lost, 'lost-first')).rejects.toMatchObject(refusal);
    await commitWith(current, 'current-last');
    expect(await committed('lost-first', 'current-last')).toEqual(['current-last']);
  });

  test('commits nothing after the other one, which cannot commit a second time', async () => {
    const [lost, current] = await claimTwice('taken-after');
    await commitWith(current, 'current-first');
    await expect(commitWith(lost, 'lost-last')).rejects.toMatchObject(refusal);
    await expect(commitWith(current, 'current-again')).rejects.toMatchObject(refusal);
    expect(await committed('current-first', 'lost-last', 'current-again')).toEqual([
      'current-first',
    ]);
  });
});
