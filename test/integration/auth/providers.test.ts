import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Provider } from '../../../db/models/Provider.ts';
import { createVault } from '../../../platform/vault.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { admin, createUser, type Page } from '../../support/users.ts';
import type { ProviderRecord, TestReport } from '../../../api/auth/providerRoutes.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { SsoStartResponse } from '../../../api/auth/ssoRoutes.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const SECRET = 'the-secret-of-the-client';
const oidc = { issuer: 'https://login.example.net', clientId: 'holdfast', clientSecret: SECRET };
let providerCount = 0;
const createProvider = (body: object = {}) =>
  admin(app).post<ProviderRecord>('/api/auth/providers', {
    kind: 'oidc',
    name: `Provider ${providerCount++}`,
    config: oidc,
    ...body,
  });

let accountCount = 0;
/** Inserts a disabled account of a provider. */
const addAccount = (providerId: string) =>
  app.deps.db('users').insert({
    id: `usr_${String(accountCount++).padStart(26, '0')}`,
    provider_id: providerId,
    external_id: '7',
    username: 'seven',
    display_name: 'Seven',
    tenant_id: 'platform',
    enabled: false,
    created_at: new Date(),
    updated_at: new Date(),
  });

describe('a provider', () => {
  test('can be created beside one whose configuration has text that is refused now', async () => {
    const { body } = await createProvider();
    const config = JSON.stringify({ ...body.config, clientId: '\u0000 \ud800' });
    await app.deps.db('providers').where({ id: body.id }).update({ config });
    await createProvider({ config: { ...oidc, ownCallback: true } }).expect(201);
    await admin(app).delete(`/api/auth/providers/${body.id}`).expect(204);
  });

  test('can be created, read, changed partially and deleted; secrets are masked', async () => {
    const { status, headers, body } = await createProvider({ name: 'Company' });
    expect([status, headers.get('location'), headers.get('etag')]).toEqual([
      201,
      `/api/auth/providers/${body.id}`,
      expect.stringMatching(/^"1-[0-9a-f]{16}"$/),
    ]);
    expect(body).toMatchObject({
      kind: 'oidc',
      enabled: true,
      config: {
        clientSecret: '********',
        groupsClaim: 'groups',
        scopes: ['openid', 'profile', 'email'],
      },
    });
    const changed = await admin(app).send<ProviderRecord>(
      'PUT',
      `/api/auth/providers/${body.id}`,
      { config: { groupsClaim: 'roles', clientSecret: '********' } },
      { 'if-match': '"1"' },
    );
    expect(changed.body).toMatchObject({
      name: 'Company',
      version: 2,
      config: { ...oidc, clientSecret: '********', groupsClaim: 'roles' },
    });
    await expectProblem(
      admin(app).send(
        'PUT',
        `/api/auth/providers/${body.id}`,
        { name: 'x' },
        { 'if-match': '"1"' },
      ),
      412,
      'version_conflict',
    );
    expect(
      (
        await admin(app).put<ProviderRecord>(`/api/auth/providers/${body.id}`, {
          config: { clientSecret: null },
        })
      ).body.config,
    ).not.toHaveProperty('clientSecret');
    await admin(app).delete(`/api/auth/providers/${body.id}`).expect(204);
    await expectProblem(admin(app).get(`/api/auth/providers/${body.id}`), 404, 'not_found');
  });

  test('stores secrets encrypted only, and not in the audit log, events or responses', async () => {
    const { body } = await createProvider();
    await admin(app).put(`/api/auth/providers/${body.id}`, {
      config: { clientSecret: `${SECRET}-2` },
    });
    const stored = JSON.stringify(
      await Promise.all(
        ['providers', 'audit_entries', 'events', 'idempotency_keys'].map((table) =>
          app.deps.db(table),
        ),
      ),
    );
    expect(stored).not.toContain(SECRET);
    expect(stored).toContain('v1.test.');
    const entry = (
      await admin(app).get<Page<AuditEntryRecord>>(
        `/api/audit?subjectId=${body.id}&action=provider.update`,
      )
    ).body.items[0];
    expect(entry?.after).toMatchObject({
      secretsChanged: ['clientSecret'],
      config: { clientSecret: '********' },
    });
    const raw = await app.deps.db('providers').where({ id: body.id }).first();
    const other = (await createProvider()).body;
    // An encrypted value is bound to its record.
    await app.deps
      .db('providers')
      .where({ id: other.id })
      .update({ secrets: JSON.stringify(raw.secrets) });
    const tested = admin(app).post(`/api/auth/providers/${other.id}/test`, {});
    await expectProblem(tested, 409, 'master_key_missing');
  });

  test('requires its secrets again when the server changes', async () => {
    const { body } = await createProvider();
    const change = (config: object) =>
      admin(app).put<ProviderRecord>(`/api/auth/providers/${body.id}`, { config });
    for (const config of [
      { issuer: 'https://evil.example' },
      { issuer: 'https://evil.example', clientSecret: '********' },
      { allowHttp: true },
    ]) {
      await expectInvalid(change(config), '/config/clientSecret');
    }
    await change({ issuer: 'https://other.example', clientSecret: 'new' }).expect(200);
    await expectInvalid(
      createProvider({ config: { ...oidc, clientSecret: '********' } }),
      '/config/clientSecret',
    );
  });

  test('with accounts changes whose ids they have only if the request says that they are the same', async () => {
    const { body } = await createProvider();
    const change = (fields: object) =>
      admin(app).put<ProviderRecord>(`/api/auth/providers/${body.id}`, fields);
    const config = { issuer: 'https://new.example', clientSecret: 'new' };
    await change({ config }).expect(200);
    await addAccount(body.id);
    await change({ config: { clientId: 'other' } }).expect(200);
    const other = { config: { ...config, issuer: 'https://third.example' } };
    await expectInvalid(change(other), '/config/issuer');
    const changed = await change({ ...other, keepAccounts: true }).expect(200);
    expect(changed.config).toMatchObject({ issuer: 'https://third.example' });
  });

  test.each([
    ['entryUUID', true],
    ['OBJECTGUID', true],
    ['uid', false],
  ])(
    'of the kind ldap with accounts that have the id %s get another server: %s',
    async (idAttribute, isFree) => {
      const server = { url: 'ldaps://one.example', userBaseDn: 'dc=one' };
      const { body } = await createProvider({ kind: 'ldap', config: { ...server, idAttribute } });
      await addAccount(body.id);
      for (const config of [{ url: 'ldaps://two.example' }, { userBaseDn: 'dc=two' }]) {
        const change = admin(app).put<ProviderRecord>(`/api/auth/providers/${body.id}`, { config });
        if (isFree) await change.expect(200);
        else await expectInvalid(change, `/config/${Object.keys(config).join('')}`);
      }
    },
  );

  test.each([
    ['oidc', { clientId: 'x' }, '/config/issuer'],
    ['oidc', { ...oidc, issuer: 'ftp://x' }, '/config/issuer'],
    ['oidc', { ...oidc, issuer: 'https://user:pw@x' }, '/config/issuer'],
    ['oidc', { ...oidc, surprise: 1 }, '/config/surprise'],
    ['ldap', { url: 'http://x', userBaseDn: 'dc=x' }, '/config/url'],
    ['ldap', { url: 'ldaps://x', userBaseDn: 'dc=x', userFilter: 'uid=x' }, '/config/userFilter'],
    [
      'saml',
      { entryPoint: 'https://x', idpEntityId: 'x', idpCertificates: [] },
      '/config/idpCertificates',
    ],
    [
      'saml',
      { entryPoint: 'javascript:alert(1)', idpEntityId: 'x', idpCertificates: ['x'] },
      '/config/entryPoint',
    ],
    ['oidc', { ...oidc, clientId: 'a\u0000' }, '/config/clientId'],
  ])('of kind %s with an invalid configuration is rejected: %j', async (kind, config, pointer) => {
    await expectInvalid(createProvider({ kind, config }), pointer);
  });

  test('has a unique name; the local provider is built in', async () => {
    await createProvider({ name: 'Same' });
    await expectProblem(createProvider({ name: 'sAME' }), 409, 'conflict');
    const { body } = await createProvider({ name: 'Übersee' });
    await expectProblem(createProvider({ name: 'übersee' }), 409, 'conflict');
    const path = `/api/auth/providers/${(await createProvider({ name: 'Other' })).body.id}`;
    await expectProblem(admin(app).put(path, { name: 'U\u0308BERSEE' }), 409, 'conflict');
    await admin(app).put(`/api/auth/providers/${body.id}`, { name: 'ÜBERSEE' }).expect(200);
    await expectProblem(createProvider({ kind: 'local', config: {} }), 409, 'built_in');
    await expectProblem(admin(app).delete('/api/auth/providers/local'), 409, 'built_in');
    expect(
      (await admin(app).post<TestReport>('/api/auth/providers/local/test', {})).body,
    ).toMatchObject({
      ok: true,
    });
  });

  test('is listed for administrators; login pages see only id, kind and name of enabled ones', async () => {
    const { body } = await createProvider({ name: 'Hidden', enabled: false });
    const nobody = app.client.as({ token: null });
    const {
      body: { items },
    } = await nobody.get<Page<{ id: string; kind: string; name: string }>>(
      '/api/auth/providers/enabled',
    );
    expect(items.map((item) => item.id)).toContain('local');
    expect(items.map((item) => item.id)).not.toContain(body.id);
    expect(new Set(items.flatMap((item) => Object.keys(item)))).toEqual(
      new Set(['id', 'kind', 'name']),
    );
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const page = await admin(app).get<Page<ProviderRecord>>(
        `/api/auth/providers?limit=1${cursor}`,
      );
      seen.push(...page.body.items.map((item) => item.id));
      if (page.body.nextCursor === null) break;
      cursor = `&cursor=${page.body.nextCursor}`;
    }
    expect(seen).toEqual([...new Set(seen)]);
    expect(seen).toEqual(expect.arrayContaining(['local', body.id]));
    expect(
      (await admin(app).get<Page<{ kind: string }>>('/api/auth/provider-kinds')).body.items.map(
        (kind) => kind.kind,
      ),
    ).toEqual(['local', 'ldap', 'oidc', 'saml']);
  });

  test('can be configured only at the platform, with the permissions of its users', async () => {
    const { body } = await createProvider();
    await admin(app).post('/api/rbac/roles', {
      id: 'auth-admin',
      name: 'x',
      permissions: ['auth:read', 'auth:write', 'job:read'],
    });
    const [everywhere, red] = [
      await createUser(app, 'auth-admin'),
      await createUser(app, { roleId: 'auth-admin', tenantId: 'red' }),
    ];
    await expectProblem(red.client.get('/api/auth/providers'), 403, 'permission_denied');
    await expectProblem(
      red.client.put(`/api/auth/providers/${body.id}`, { name: 'x' }),
      403,
      'permission_denied',
    );
    await everywhere.client.put(`/api/auth/providers/${body.id}`, { enabled: false }).expect(200);
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId: body.id,
      externalGroup: 'admins',
      roleId: 'platform-admin',
    });
    // A caller who points the provider at another server could sign in as one of these admins.
    await expectProblem(
      everywhere.client.put(`/api/auth/providers/${body.id}`, {
        config: { issuer: 'https://evil.example', clientSecret: 'x' },
      }),
      403,
      'permission_denied',
    );
    await expectProblem(
      everywhere.client.delete(`/api/auth/providers/${body.id}`),
      403,
      'permission_denied',
    );
    await admin(app).delete(`/api/auth/providers/${body.id}`).expect(204);
  });
});

describe('what changes with a provider is recorded where it belongs', () => {
  const recorded = async (tenantId: string, ids: string[]) => {
    const { db } = app.deps;
    const where = { tenant_id: tenantId };
    return {
      entries: await db('audit_entries').where(where).whereIn('subject_id', ids).orderBy('action'),
      events: await db('events').where(where).whereIn('subject_id', ids).orderBy('type'),
    };
  };

  test('accounts and mappings of one that is deleted', async () => {
    const { body: provider } = await createProvider({ config: { ...oidc, ownCallback: true } });
    await addAccount(provider.id);
    const found = await app.deps.db('users').where({ provider_id: provider.id }).first('id');
    await app.deps.db('users').where(found).update({ enabled: true, tenant_id: 'red' });
    const mapping = await app.client
      .as({ actor: 'root', roles: 'platform-admin', tenant: 'red' })
      .post<{ id: string }>('/api/rbac/provider-mappings', {
        providerId: provider.id,
        externalGroup: 'operators',
        roleId: 'operator',
        tenantId: 'red',
      })
      .expect(201);
    await admin(app).delete(`/api/auth/providers/${provider.id}`).expect(204);
    const { entries, events } = await recorded('red', [found.id, mapping.id]);
    expect(entries.map(({ action, actor_id: actor }) => [action, actor])).toEqual([
      ['mapping.create', 'root'],
      ['mapping.delete', 'root'],
      ['user.update', 'root'],
    ]);
    expect(entries[2]).toMatchObject({ before: { enabled: true }, after: { enabled: false } });
    expect(events.map(({ type, data }) => [type, data.enabled])).toEqual([
      ['auth.user.updated', false],
      ['rbac.mapping.created', undefined],
      ['rbac.mapping.deleted', undefined],
    ]);
    const deletion = await recorded('platform', [provider.id]);
    expect(deletion.entries.find(({ action }) => action === 'provider.delete')?.after).toEqual({
      mappings: 1,
      usersDisabled: 1,
    });
  });

  test('the provider of local accounts that a recovery enables, and the account of another tenant', async () => {
    const path = '/api/auth/providers/local';
    const user = await createUser(app, 'platform-admin');
    await app.deps.db('users').where({ id: user.id }).update({ tenant_id: 'red' });
    await app.deps.db('providers').where({ id: 'local' }).update({ enabled: false });
    const { version } = await admin(app).get<ProviderRecord>(path).expect(200);
    await app.deps.bootstrapAdmin.recover(user.username, { promote: false, create: false });
    expect(await admin(app).get<ProviderRecord>(path).expect(200)).toMatchObject({
      enabled: true,
      version: version + 1,
    });
    const { entries, events } = await recorded('platform', ['local']);
    const last = entries.toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1);
    expect(last).toMatchObject({
      action: 'provider.update',
      before: { enabled: false },
      after: { enabled: true },
    });
    expect(events.at(-1)).toMatchObject({
      type: 'auth.provider.updated',
      data: { providerId: 'local', enabled: true },
    });
    const reset = await recorded('red', [user.id]);
    expect(reset.entries.map(({ action }) => action)).toEqual(['user.reset_password']);
    expect(reset.events.map(({ type }) => type)).toEqual(['auth.user.updated']);
  });
});

describe('the master key', () => {
  const key = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`;

  test('can be replaced without losing secrets', async () => {
    const fresh = await startApp(
      { HOLDFAST_ROLE: 'api', HOLDFAST_MASTER_KEYS: key('old', 1) },
      { idle: true },
    );
    const ids = await Promise.all(
      [0, 1, 2].map(
        async (i) =>
          (
            await admin(fresh).post<ProviderRecord>('/api/auth/providers', {
              kind: 'oidc',
              name: `P${i}`,
              config: { ...oidc, clientSecret: `${SECRET}-${i}` },
            })
          ).body.id,
      ),
    );
    const both = await startAppOn(fresh.databaseUrl, {
      HOLDFAST_ROLE: 'api',
      HOLDFAST_MASTER_KEYS: `${key('new', 2)},${key('old', 1)}`,
    });
    const { systemCaller } = await import('../../../domain/shared/caller.ts');
    const reencrypt = () => both.deps.providers.reencryptSecrets(systemCaller('platform', 'test'));
    expect(await reencrypt()).toEqual({ reencrypted: 3, unreadable: [] });
    expect(await reencrypt()).toEqual({ reencrypted: 0, unreadable: [] });
    await both.stop();
    const only = await startAppOn(
      fresh.databaseUrl,
      {
        HOLDFAST_ROLE: 'api',
        HOLDFAST_MASTER_KEYS: key('new', 2),
      },
      { idle: true },
    );
    const { Provider } = await import('../../../db/models/Provider.ts');
    for (const [i, id] of ids.entries()) {
      const provider = await Provider.query(only.deps.db).findById(id).throwIfNotFound();
      expect(only.deps.providers.openConfig(provider)).toMatchObject({
        clientSecret: `${SECRET}-${i}`,
      });
    }
    await only.stop();
    const lost = await startAppOn(
      fresh.databaseUrl,
      {
        HOLDFAST_ROLE: 'api',
        HOLDFAST_MASTER_KEYS: key('old', 1),
      },
      { idle: true },
    );
    await expectProblem(
      admin(lost).post(`/api/auth/providers/${ids[0]}/test`, {}),
      409,
      'master_key_missing',
    );
    // A configuration that stays as it is needs no key.
    const renamed = await admin(lost)
      .put<ProviderRecord>(`/api/auth/providers/${ids[0]}`, { name: 'Renamed', config: {} })
      .expect(200);
    expect(renamed.name).toBe('Renamed');
    // The user learns only that the provider is not available.
    await expectProblem(
      lost.client
        .as({ token: null })
        .post<SsoStartResponse>('/api/auth/login/oidc/start', { providerId: ids[0] }),
      502,
      'provider_unavailable',
    );
    await lost.stop();
    await fresh.stop();
  });

  test.each([
    ['is missing', 'lost'],
    ['is replaced by one of the same name', 'test'],
  ])('that %s does not keep a secret from being replaced', async (_what, keyId) => {
    const { id } = await createProvider().expect(201);
    const sealed = createVault([{ id: keyId, key: Buffer.alloc(32, 9) }]).seal(
      SECRET,
      `provider:${id}:clientSecret`,
    );
    const row = () => Provider.query(app.deps.db).findById(id).throwIfNotFound();
    await row().patch({ secrets: { clientSecret: sealed } });
    const change = (config: object) =>
      admin(app).put<ProviderRecord>(`/api/auth/providers/${id}`, { config });
    for (const kept of [
      { groupsClaim: 'roles' },
      { groupsClaim: 'roles', clientSecret: '********' },
    ])
      await expectInvalid(change(kept), '/config/clientSecret');
    await change({ clientSecret: 'sent again, and different' }).expect(200);
    expect(app.deps.providers.openConfig(await row())).toMatchObject({
      clientSecret: 'sent again, and different',
    });
    await row().patch({ secrets: { clientSecret: sealed } });
    const { config } = await change({ clientSecret: null }).expect(200);
    expect(config).not.toHaveProperty('clientSecret');
  });

  test('is required only to store a secret', async () => {
    const fresh = await startApp(
      { HOLDFAST_ROLE: 'api', HOLDFAST_MASTER_KEYS: '' },
      { idle: true },
    );
    try {
      await expectProblem(
        admin(fresh).post('/api/auth/providers', { kind: 'oidc', name: 'x', config: oidc }),
        409,
        'master_key_missing',
      );
      const { clientSecret, ...open } = oidc;
      await admin(fresh)
        .post('/api/auth/providers', { kind: 'oidc', name: 'x', config: open })
        .expect(201);
    } finally {
      await fresh.stop();
    }
  });
});
