import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { EventRecord } from '../../../api/events/schemas.ts';
import type { SecretRecord } from '../../../api/secrets/schemas.ts';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { publishEvents } from '../../../db/events/publish.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { runHere } from '../../support/commands.ts';
import type { Log } from '../../../platform/log.ts';
import { createVault, type Vault } from '../../../platform/vault.ts';
import { reportMissingKeys } from '../../../processes/missingKeys.ts';
import { reencryptSecrets } from '../../../processes/cli/reencryptSecrets.ts';
import { createSecrets } from '../../../services/secrets/secrets.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { type Page } from '../../support/users.ts';

let app: TestApp;
let platform: TestClient;
let red: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  const at = (tenant: string) => app.client.as({ actor: 'root', roles: 'platform-admin', tenant });
  [platform, red] = [at('platform'), at('red')];
});
afterAll(() => app.stop());

/** No response, row, log or command may contain a value that has this. */
const CANARY = 'canary-4711';

let names = 0;
const create = (client: TestClient, fields: object = {}, headers?: Record<string, string>) =>
  client.post<SecretRecord>(
    '/api/secrets',
    { name: `secret-${++names}`, value: `${CANARY} first`, pools: ['ams'], ...fields },
    headers,
  );
const createWebhook = () =>
  red
    .post('/api/webhooks', { endpointUrl: 'https://example.net/hook', eventTypes: ['job.failed'] })
    .expect(201);
const createProvider = () =>
  platform
    .post('/api/auth/providers', {
      kind: 'oidc',
      name: 'Company',
      config: { issuer: 'https://id.example.net', clientId: 'holdfast', clientSecret: CANARY },
    })
    .expect(201);
const actionsOf = async (id: string) => {
  const { items } = await platform
    .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${id}`)
    .expect(200);
  return items.toReversed();
};

describe('a named secret', () => {
  test('is created, changed, replaced and deleted; its value is in no response and in no table', async () => {
    const key = { 'idempotency-key': 'secret' };
    const fields = { name: 'api-token', pools: ['fra', 'ams', 'ams'], description: 'Reads ports' };
    const made = await create(red, fields, key).expect(201);
    expect(made).toEqual({
      id: made.id,
      tenantId: 'red',
      name: 'api-token',
      description: 'Reads ports',
      pools: ['ams', 'fra'],
      valueSetAt: made.createdAt,
      createdBy: 'root',
      createdAt: made.createdAt,
      updatedAt: made.createdAt,
      version: 1,
    });
    expect((await create(red, fields, key)).body).toEqual(made);
    const path = `/api/secrets/${made.id}`;
    const described = await red.put<SecretRecord>(path, { description: 'New' }).expect(200);
    expect(described).toMatchObject({ version: 2, valueSetAt: made.valueSetAt });
    const stale = red.put(path, { value: `${CANARY} x` }, { 'if-match': '"1"' });
    await expectProblem(stale, 412, 'version_conflict');
    const rotated = await red
      .put<SecretRecord>(path, { value: `${CANARY} second` }, { 'if-match': '"2"' })
      .expect(200);
    expect(rotated).toMatchObject({ version: 3, pools: ['ams', 'fra'], description: 'New' });
    expect(rotated.valueSetAt > made.valueSetAt).toBe(true);
    const { sealed } = await app.deps.db('secrets').where({ id: made.id }).first();
    expect(app.deps.vault.open(sealed, `secret:${made.id}:value`)).toBe(`${CANARY} second`);
    expect(() => app.deps.vault.open(sealed, 'secret:sec_other:value')).toThrow();
    await red.delete(path, { 'if-match': '"3"' }).expect(204);
    await expectProblem(red.get(path), 404, 'not_found');

    expect((await actionsOf(made.id)).map(({ action, after }) => [action, after])).toEqual([
      ['secret.create', { name: 'api-token', description: 'Reads ports', pools: ['ams', 'fra'] }],
      [
        'secret.update',
        { name: 'api-token', description: 'New', pools: ['ams', 'fra'], valueChanged: false },
      ],
      [
        'secret.update',
        { name: 'api-token', description: 'New', pools: ['ams', 'fra'], valueChanged: true },
      ],
      ['secret.delete', null],
    ]);
    const { db } = app.deps;
    await publishEvents(db, { limit: 10_000, maxDeliveries: 10_000 });
    const events = await red
      .get<Page<EventRecord>>(`/api/events?subject=${made.id}&sort=sequence`)
      .expect(200);
    expect(events.items.map(({ data }) => data)).toEqual(
      Array.from({ length: 4 }, () => ({ secretId: made.id })),
    );
    for (const table of ['secrets', 'audit_entries', 'events', 'idempotency_keys', 'outbox'])
      expect(JSON.stringify(await db(table))).not.toContain(CANARY);
  });

  test('is kept by the mask in an update, and cannot be the mask', async () => {
    const { id, valueSetAt } = await create(red).expect(201);
    const kept = await red
      .put<SecretRecord>(`/api/secrets/${id}`, { value: '********', description: 'Kept' })
      .expect(200);
    expect(kept).toMatchObject({ valueSetAt, description: 'Kept' });
    const { sealed } = await app.deps.db('secrets').where({ id }).first();
    expect(app.deps.vault.open(sealed, `secret:${id}:value`)).toBe(`${CANARY} first`);
    expect((await actionsOf(id)).at(-1)?.after).toMatchObject({ valueChanged: false });
    const refused = await expectInvalid(create(red, { value: '********' }), '/value');
    expect(refused.errors?.[0]?.code).toBe('masked');
  });

  test('has a name of its own in its tenant, which never changes', async () => {
    const { id, name } = await create(red).expect(201);
    await expectProblem(create(red, { name }), 409, 'conflict');
    await create(platform, { name }).expect(201);
    await expectInvalid(red.put(`/api/secrets/${id}`, { name: 'another' }), '/name');
    for (const wrong of ['Upper', 'with space', '-x', 'x'.repeat(64)])
      await expectInvalid(create(red, { name: wrong }), '/name');
    await expectInvalid(create(red, { pools: ['No Pool'] }), '/pools/0');
    for (const value of ['', `${CANARY}\0`])
      await expectProblem(create(red, { value }), 400, 'invalid_request');
    const tooLong = create(red, { value: CANARY.repeat(4_000) });
    expect(JSON.stringify(await expectInvalid(tooLong, '/value'))).not.toContain(CANARY);
  });

  test('is read and written with permissions of its own', async () => {
    const { id, name } = await create(red).expect(201);
    const as = (roles: string, tenant = 'red') => app.client.as({ actor: 'kim', roles, tenant });
    const list = (client: TestClient, query = '') =>
      client.get<Page<SecretRecord>>(`/api/secrets?limit=200${query}`);
    for (const role of ['operator', 'viewer', 'approver'])
      await expectProblem(list(as(role)), 403, 'permission_denied');
    const auditor = as('auditor');
    expect((await list(auditor, `&name=${name}`).expect(200)).items.map((each) => each.id)).toEqual(
      [id],
    );
    await expectProblem(auditor.delete(`/api/secrets/${id}`), 403, 'permission_denied');
    await expectProblem(as('auditor', 'blue').get(`/api/secrets/${id}`), 404, 'not_found');
    expect((await list(as('auditor', 'blue')).expect(200)).items).toEqual([]);
    const both = await list(platform, '&sort=name').expect(200);
    expect(both.items.map((each) => each.name)).toEqual(both.items.map((each) => each.name).sort());
  });

  test('is encrypted again by reencrypt-secrets, with the facts in the audit log', async () => {
    const { id } = await create(red).expect(201);
    const next = `next:${Buffer.alloc(32, 9).toString('base64')}`;
    const env = { ...app.env, HOLDFAST_MASTER_KEYS: `${next},${app.env.HOLDFAST_MASTER_KEYS}` };
    const other = await startAppOn(app.databaseUrl, env, { idle: true });
    try {
      const { status, text } = await runHere(other, reencryptSecrets);
      expect([status, text]).toEqual([
        0,
        expect.stringMatching(/^Encrypted again: [1-9]\d* secrets/),
      ]);
      expect(text).not.toContain(CANARY);
      const { sealed } = await app.deps.db('secrets').where({ id }).first();
      expect(other.deps.vault.isCurrent(sealed)).toBe(true);
      expect(other.deps.vault.open(sealed, `secret:${id}:value`)).toBe(`${CANARY} first`);
      expect((await actionsOf(id)).map(({ action }) => action)).toEqual([
        'secret.create',
        'secret.reencrypt_secrets',
      ]);
    } finally {
      await other.stop();
      // The first process has no such key.
      await app.deps.db('secrets').delete();
    }
  });
});

test('reencrypt-secrets goes on after what it cannot open, and after what was deleted', async () => {
  const keyOf = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`;
  const { db, env, vault } = { ...app.deps, env: app.env };
  const [lost, deleted, kept] = [await create(red), await create(red), await create(red)].map(
    ({ body }) => body.id,
  ) as [string, string, string];
  const webhook = (await createWebhook()) as { id: string };
  const provider = (await createProvider()) as { id: string };
  const unknown = createVault([{ id: 'lost', key: Buffer.alloc(32, 7) }]);
  await db('secrets')
    .where({ id: lost })
    .update({ sealed: unknown.seal('x', `secret:${lost}:value`) });
  await db('webhooks')
    .where({ id: webhook.id })
    .update({ previous_secret: unknown.seal('x', `webhook:${webhook.id}`) });
  const keys = `${keyOf('next', 8)},${env.HOLDFAST_MASTER_KEYS}`;
  const other = await startAppOn(
    app.databaseUrl,
    { ...env, HOLDFAST_MASTER_KEYS: keys },
    { idle: true },
  );
  try {
    const deletesFirst = createSecrets({
      ...other.deps,
      async commit(caller, useCase) {
        await db('secrets').where({ id: deleted }).delete();
        return other.deps.commit(caller, useCase);
      },
    });
    expect(await deletesFirst.reencryptSecrets(systemCaller('platform', 'test'))).toEqual({
      reencrypted: 1,
      unreadable: [lost],
    });
    const { status, text } = await runHere(other, reencryptSecrets);
    expect(status).toBe(1);
    expect(text).toMatch(/^Encrypted again: [1-9]\d* secrets/);
    expect(text.match(/^ {2}\S+$/gm)?.map((id) => id.trim())).toEqual([webhook.id, lost]);
    const { sealed } = await db('secrets').where({ id: kept }).first();
    const { secret } = await db('webhooks').where({ id: webhook.id }).first();
    const { secrets } = await db('providers').where({ id: provider.id }).first();
    for (const value of [sealed, secret, secrets.clientSecret])
      expect(other.deps.vault.isCurrent(value)).toBe(true);
    expect(vault.isCurrent(sealed)).toBe(false);
  } finally {
    await other.stop();
    // The first process has no such keys.
    await db('secrets').delete();
    await db('webhooks').where({ id: webhook.id }).delete();
    await db('providers').where({ id: provider.id }).delete();
  }
});

describe('the master keys of a process', () => {
  test('must open every stored secret: those that it lacks are named at start, and no others', async () => {
    await create(red).expect(201);
    const lines: unknown[] = [];
    const log = {
      error: ({ keys }: { keys: string[] }, text: string) => lines.push([keys, text]),
    } as unknown as Log;
    const report = (vault: Vault) =>
      reportMissingKeys({ db: app.deps.db, vault }, log, AbortSignal.timeout(10_000));
    await report(app.deps.vault);
    expect(lines).toEqual([]);
    await report(createVault([{ id: 'another', key: Buffer.alloc(32, 1) }]));
    expect(lines.splice(0)).toEqual([[['test'], expect.stringContaining('does not have')]]);
    await report(createVault([{ id: 'test', key: Buffer.alloc(32, 250) }]));
    expect(lines).toEqual([[['test'], expect.stringContaining('do not open')]]);
  });

  test.each([
    ['a webhook', createWebhook],
    ['an identity provider', createProvider],
  ])('are checked with a secret of %s', async (_name, makeSecret) => {
    await app.deps.db('secrets').delete();
    await app.deps.db('webhooks').delete();
    await makeSecret();
    const lines: unknown[] = [];
    const log = { error: (fields: object) => lines.push(fields) } as unknown as Log;
    const report = (vault: Vault) =>
      reportMissingKeys({ db: app.deps.db, vault }, log, AbortSignal.timeout(10_000));
    await report(app.deps.vault);
    expect(lines).toEqual([]);
    await report(createVault([{ id: 'test', key: Buffer.alloc(32, 250) }]));
    expect(lines).toEqual([{ keys: ['test'] }]);
  });
});

describe('an attempt of a remote job', () => {
  const release = (tenant: string, wanted: Record<string, string>, pool = 'ams') =>
    app.deps.secretsForAttempt(systemCaller(tenant, 'job:job_1'), {
      jobId: 'job_1',
      attempt: 2,
      pool,
      wanted: Object.fromEntries(
        Object.entries(wanted).map(([variable, secret]) => [variable, { secret }]),
      ),
    });
  const missing = (tenant: string, wanted: Record<string, string>, pool?: string) =>
    release(tenant, wanted, pool).then(
      () => null,
      (error: unknown) =>
        error instanceof JobFailure ? [error.code, error.retryable, error.message] : error,
    );

  test('gets the secrets of its tenant, else of the platform, each audited once', async () => {
    const own = await create(red, { name: 'shared', value: 'of red' }).expect(201);
    const general = await create(platform, { name: 'shared', value: 'of all' }).expect(201);
    const common = await create(platform, { name: 'common', value: 'for all' }).expect(201);
    expect(await release('red', { ONE: 'shared', TWO: 'shared', THREE: 'common' })).toEqual({
      ONE: 'of red',
      TWO: 'of red',
      THREE: 'for all',
    });
    expect(await release('blue', { ONE: 'shared' })).toEqual({ ONE: 'of all' });
    const used = async (id: string) =>
      (await actionsOf(id))
        .filter(({ action }) => action === 'secret.use')
        .map(({ tenantId, after }) => [tenantId, after]);
    const after = { jobId: 'job_1', attempt: 2, pool: 'ams' };
    expect([await used(own.id), await used(general.id), await used(common.id)]).toEqual([
      [['red', after]],
      [['blue', after]],
      [['red', after]],
    ]);
    expect(await release('red', {})).toEqual({});
  });

  test('gets none if one is missing, or is not for its pool, and is not shown which of the two', async () => {
    const { id } = await create(platform, { name: 'for-fra', pools: ['fra'] }).expect(201);
    await create(platform, { name: 'for-ams' }).expect(201);
    const denied = await missing('red', { A: 'for-ams', B: 'for-fra' });
    expect(denied).toEqual([
      'secret_missing',
      false,
      'The pool ams gets no secret called for-fra for jobs of this tenant',
    ]);
    const absent = await missing('red', { A: 'for-ams', B: 'nowhere' });
    expect(absent).toEqual(JSON.parse(JSON.stringify(denied).replace('for-fra', 'nowhere')));
    // One of another tenant is absent; an own one hides that of the platform.
    await create(platform.as({ actor: 'root', roles: 'platform-admin', tenant: 'blue' }), {
      name: 'of-blue',
    }).expect(201);
    expect(await missing('red', { A: 'of-blue' })).toContain('secret_missing');
    await create(red, { name: 'for-ams', pools: [] }).expect(201);
    expect(await missing('red', { A: 'for-ams' })).toContain('secret_missing');
    expect((await actionsOf(id)).map(({ action }) => action)).toEqual(['secret.create']);
  });

  test('gets none if the key that encrypted one is not there', async () => {
    const { id } = await create(red, { name: 'moved' }).expect(201);
    await app.deps.db('secrets').where({ id }).update({ sealed: 'v1.missing.AAAA' });
    expect(await missing('red', { A: 'moved' })).toEqual([
      'secret_unreadable',
      false,
      'The secret moved cannot be decrypted',
    ]);
  });
});
