import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { admin, person } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const codeOf = ({ status, body }: { status: number; body: any }) => [status, body.code ?? null];
const SECRET = 'the-secret-of-the-client';
const oidc = { issuer: 'https://login.example.net', clientId: 'holdfast', clientSecret: SECRET };
let made = 0;
const create = (body: object = {}) =>
  admin(app).post('/api/auth/providers', {
    kind: 'oidc',
    name: `Provider ${made++}`,
    config: oidc,
    ...body,
  });

describe('a provider', () => {
  test('is made, read, changed by parts and deleted; secrets come back masked', async () => {
    const { status, headers, body } = await create({ name: 'Company' });
    expect([status, headers.get('location'), headers.get('etag')]).toEqual([
      201,
      `/api/auth/providers/${body.id}`,
      '"1"',
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
    const changed = await admin(app).send(
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
    expect(
      codeOf(
        await admin(app).send(
          'PUT',
          `/api/auth/providers/${body.id}`,
          { name: 'x' },
          { 'if-match': '"1"' },
        ),
      ),
    ).toEqual([412, 'version_stale']);
    expect(
      (await admin(app).put(`/api/auth/providers/${body.id}`, { config: { clientSecret: null } }))
        .body.config.clientSecret,
    ).toBeUndefined();
    expect((await admin(app).delete(`/api/auth/providers/${body.id}`)).status).toBe(204);
    expect(codeOf(await admin(app).get(`/api/auth/providers/${body.id}`))).toEqual([
      404,
      'not_found',
    ]);
  });

  test('keeps its secrets sealed, out of trail, events and answers', async () => {
    const { body } = await create();
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
    const entry = (await admin(app).get(`/api/audit?subjectId=${body.id}&action=provider.update`))
      .body.items[0];
    expect(entry.after).toMatchObject({
      secretsChanged: ['clientSecret'],
      config: { clientSecret: '********' },
    });
    const raw = await app.deps.db('providers').where({ id: body.id }).first();
    const other = (await create()).body;
    // A sealed value opens only where it belongs.
    await app.deps
      .db('providers')
      .where({ id: other.id })
      .update({ secrets: JSON.stringify(raw.secrets) });
    expect((await admin(app).post(`/api/auth/providers/${other.id}/test`, {})).status).toBe(500);
  });

  test('asks for its secrets again when the server changes, so that they do not go to another one', async () => {
    const { body } = await create();
    const change = (config: object) => admin(app).put(`/api/auth/providers/${body.id}`, { config });
    for (const config of [
      { issuer: 'https://evil.example' },
      { issuer: 'https://evil.example', clientSecret: '********' },
      { allowHttp: true },
    ]) {
      const answer = await change(config);
      expect([answer.status, answer.body.errors[0].pointer]).toEqual([400, '/config/clientSecret']);
    }
    expect((await change({ issuer: 'https://other.example', clientSecret: 'new' })).status).toBe(
      200,
    );
    const masked = await create({ config: { ...oidc, clientSecret: '********' } });
    expect([masked.status, masked.body.errors[0].pointer]).toEqual([400, '/config/clientSecret']);
  });

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
  ])('of kind %s is checked: %j', async (kind, config, pointer) => {
    const answer = await create({ kind, config });
    expect([answer.status, answer.body.errors?.map((error: any) => error.pointer)]).toEqual([
      400,
      expect.arrayContaining([pointer]),
    ]);
  });

  test('has a name of its own; the local one is built in', async () => {
    await create({ name: 'Same' });
    expect(codeOf(await create({ name: 'sAME' }))).toEqual([409, 'conflict']);
    expect(codeOf(await create({ kind: 'local', config: {} }))).toEqual([409, 'built_in']);
    expect(codeOf(await admin(app).delete('/api/auth/providers/local'))).toEqual([409, 'built_in']);
    expect((await admin(app).post('/api/auth/providers/local/test', {})).body).toMatchObject({
      ok: true,
    });
  });

  test('is listed for administrators, and when it is enabled for a login page, with nothing that helps an attacker', async () => {
    const { body } = await create({ name: 'Hidden', enabled: false });
    const nobody = app.client.as({ token: null });
    const {
      body: { items },
    } = await nobody.get('/api/auth/providers/enabled');
    expect(items.map((item: any) => item.id)).toContain('local');
    expect(items.map((item: any) => item.id)).not.toContain(body.id);
    expect(new Set(items.flatMap((item: any) => Object.keys(item)))).toEqual(
      new Set(['id', 'kind', 'name']),
    );
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const page = await admin(app).get(`/api/auth/providers?limit=1${cursor}`);
      seen.push(...page.body.items.map((item: any) => item.id));
      if (page.body.nextCursor === null) break;
      cursor = `&cursor=${page.body.nextCursor}`;
    }
    expect(seen).toEqual([...new Set(seen)]);
    expect(seen).toEqual(expect.arrayContaining(['local', body.id]));
    expect(
      (await admin(app).get('/api/auth/provider-kinds')).body.items.map((kind: any) => kind.kind),
    ).toEqual(['local', 'ldap', 'oidc', 'saml']);
  });

  test('is the business of the platform, and of those who hold what its people hold', async () => {
    const { body } = await create();
    await admin(app).post('/api/rbac/roles', {
      id: 'auth-admin',
      name: 'x',
      permissions: ['auth:read', 'auth:write', 'job:read'],
    });
    const [everywhere, red] = [
      await person(app, 'auth-admin'),
      await person(app, { roleId: 'auth-admin', tenantId: 'red' }),
    ];
    expect(codeOf(await red.client.get('/api/auth/providers'))).toEqual([403, 'permission_denied']);
    expect(codeOf(await red.client.put(`/api/auth/providers/${body.id}`, { name: 'x' }))).toEqual([
      403,
      'permission_denied',
    ]);
    expect(
      (await everywhere.client.put(`/api/auth/providers/${body.id}`, { enabled: false })).status,
    ).toBe(200);
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId: body.id,
      externalGroup: 'admins',
      roleId: 'platform-admin',
    });
    // Whoever points a provider elsewhere could come back as one of these admins.
    expect(
      codeOf(
        await everywhere.client.put(`/api/auth/providers/${body.id}`, {
          config: { issuer: 'https://evil.example', clientSecret: 'x' },
        }),
      ),
    ).toEqual([403, 'permission_denied']);
    expect(codeOf(await everywhere.client.delete(`/api/auth/providers/${body.id}`))).toEqual([
      403,
      'permission_denied',
    ]);
    expect((await admin(app).delete(`/api/auth/providers/${body.id}`)).status).toBe(204);
  });
});

describe('the master key', () => {
  const key = (id: string, fill: number) => `${id}:${Buffer.alloc(32, fill).toString('base64')}`;

  test('is replaced without losing a secret', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_MASTER_KEYS: key('old', 1) });
    const ids = await Promise.all(
      [0, 1, 2].map(
        async (i) =>
          (
            await admin(fresh).post('/api/auth/providers', {
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
    expect(await both.deps.providers.resealAll(systemCaller('platform', 'test'))).toBe(3);
    expect(await both.deps.providers.resealAll(systemCaller('platform', 'test'))).toBe(0);
    await both.stop();
    const only = await startAppOn(fresh.databaseUrl, {
      HOLDFAST_ROLE: 'api',
      HOLDFAST_MASTER_KEYS: key('new', 2),
    });
    const { Provider } = await import('../../../db/models/Provider.ts');
    for (const [i, id] of ids.entries()) {
      const provider = await Provider.query(only.deps.db).findById(id).throwIfNotFound();
      expect(only.deps.providers.openConfig(provider)).toMatchObject({
        clientSecret: `${SECRET}-${i}`,
      });
    }
    await only.stop();
    const lost = await startAppOn(fresh.databaseUrl, {
      HOLDFAST_ROLE: 'api',
      HOLDFAST_MASTER_KEYS: key('old', 1),
    });
    expect(codeOf(await admin(lost).post(`/api/auth/providers/${ids[0]}/test`, {}))).toEqual([
      409,
      'master_key_missing',
    ]);
    // Who signs in is told no more than that it does not work now.
    const start = await lost.client
      .as({ token: null })
      .post('/api/auth/login/oidc/start', { providerId: ids[0] });
    expect(codeOf(start)).toEqual([502, 'provider_unavailable']);
    await lost.stop();
    await fresh.stop();
  });

  test('is missed when a secret shall be kept, and not otherwise', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_MASTER_KEYS: '' });
    try {
      expect(
        codeOf(
          await admin(fresh).post('/api/auth/providers', { kind: 'oidc', name: 'x', config: oidc }),
        ),
      ).toEqual([409, 'master_key_missing']);
      const { clientSecret: _, ...open } = oidc;
      expect(
        (await admin(fresh).post('/api/auth/providers', { kind: 'oidc', name: 'x', config: open }))
          .status,
      ).toBe(201);
    } finally {
      await fresh.stop();
    }
  });
});
