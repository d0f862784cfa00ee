import { connect, createServer, type AddressInfo } from 'node:net';
import { Attribute, Change } from 'ldapts';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { selfSigned } from '../support/certificate.ts';
import { admin } from '../support/users.ts';
import { startSlapd } from '../support/slapd.ts';

let app: TestApp;
let slapd: Awaited<ReturnType<typeof startSlapd>>;
let providerId: string;
beforeAll(async () => {
  [app, slapd] = await Promise.all([
    startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_OUTBOUND_ALLOW: '' }),
    startSlapd(),
  ]);
  providerId = await provider();
});
afterAll(() => Promise.all([app.stop(), slapd.stop()]));

let made = 0;
async function provider(change: object = {}): Promise<string> {
  const answer = await admin(app).post('/api/auth/providers', {
    kind: 'ldap',
    name: `Directory ${made++}`,
    config: { ...slapd.config, ...change },
  });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.id;
}
const login = (username: string, password: string, id = providerId) =>
  app.client
    .as({ token: null })
    .post('/api/auth/login/ldap', { providerId: id, username, password });
const codeOf = ({ status, body }: { status: number; body: any }) => [status, body.code ?? null];
const run = (id: string, body: object = {}) =>
  admin(app).post(`/api/auth/providers/${id}/test`, body);

describe('a login', () => {
  test('finds the person, checks the password and brings name, e-mail and groups', async () => {
    const { status, body } = await login('ada', 'ada-secret');
    expect([status, body.tokenType]).toEqual([200, 'Bearer']);
    expect(body.user).toMatchObject({
      username: 'ada',
      displayName: 'ada Person',
      email: 'ada@example.net',
      providerId,
      groups: ['net-admins', 'operators, east'],
    });
    const again = await login('ADA', 'ada-secret');
    expect(again.body.user.id).toBe(body.user.id);
  });

  test('works with StartTLS too, and with memberOf instead of a search for groups', async () => {
    const { groupBaseDn: _, ...rest } = slapd.config;
    const answer = await admin(app).post('/api/auth/providers', {
      kind: 'ldap',
      name: 'StartTLS',
      config: { ...rest, url: slapd.urls.plain, startTls: true },
    });
    const { body } = await login('ada', 'ada-secret', answer.body.id);
    expect(body.user.groups).toEqual(['net-admins', 'operators, east']);
    expect(body.user.id).not.toBe((await login('ada', 'ada-secret')).body.user.id);
  });

  test.each([
    ['a wrong password', 'ada', 'bob-secret'],
    ['an empty password', 'ada', ''],
    ['an unknown name', 'nobody', 'nobody-secret'],
    ['a wildcard', '*', 'ada-secret'],
    ['a wildcard behind a name', 'ad*', 'ada-secret'],
    ['a filter', 'ada)(uid=*', 'ada-secret'],
    ['a closing filter', '*)(objectClass=*))(|(uid=*', 'ada-secret'],
    ['a NUL escape', 'ada\\00', 'ada-secret'],
    ['a DN', 'uid=ada,ou=people,dc=example,dc=net', 'ada-secret'],
  ])('with %s fails the same way', async (_what, username, password) => {
    const answer = await login(username, password);
    expect([answer.status, answer.body.detail]).toEqual([401, 'User name or password is wrong.']);
  });

  test('takes names with the signs of filters for what they are', async () => {
    expect((await login('eve*', 'eve*-secret')).body.user.username).toBe('eve*');
    expect((await login('o(pen)', 'o(pen)-secret')).body.user.username).toBe('o(pen)');
  });

  test('is throttled', async () => {
    const answers = await Promise.all(Array.from({ length: 14 }, () => login('bob', 'wrong')));
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(4);
    expect((await login('bob', 'bob-secret')).status).toBe(429);
  });

  test('takes as many connections and binds for an unknown name as for a known one', async () => {
    await app.deps.db('rate_limits').delete();
    const target = Number(new URL(slapd.urls.secure.replace('ldaps:', 'https:')).port);
    let connections = 0;
    const proxy = createServer((socket) => {
      connections += 1;
      const onward = connect(target, '127.0.0.1');
      for (const [from, to] of [
        [socket, onward],
        [onward, socket],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const id = await provider({
      url: `ldaps://localhost:${(proxy.address() as AddressInfo).port}`,
    });
    const counted = async (name: string) => {
      connections = 0;
      expect((await login(name, 'wrong', id)).status).toBe(401);
      return connections;
    };
    expect([await counted('ada'), await counted('stranger')]).toEqual([2, 2]);
    proxy.close();
  });

  test.each([
    ['its name', 'localhost'],
    ['an address', '127.0.0.1'],
  ])('goes to no private address that is not allowed, by %s', async (_what, host) => {
    const id = await provider({
      url: slapd.urls.secure.replace('localhost', host),
      allowPrivateNetwork: false,
    });
    expect(codeOf(await login('ada', 'ada-secret', id))).toEqual([502, 'provider_unavailable']);
  });

  test('does not hang on a server that never ends the TLS handshake', async () => {
    // It grants StartTLS (RFC 4511, 4.14) and says nothing more.
    let handshakes = 0;
    const silent = createServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('data', (asked) => {
          handshakes += 1;
          // The answer has the number of the question.
          socket.write(
            Buffer.concat([
              Buffer.from('300c0201', 'hex'),
              asked.subarray(4, 5),
              Buffer.from('78070a010004000400', 'hex'),
            ]),
          );
        });
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const id = await provider({
      url: `ldap://localhost:${(silent.address() as AddressInfo).port}`,
      startTls: true,
      timeoutMs: 500,
    });
    const began = Date.now();
    expect(codeOf(await login('ada', 'ada-secret', id))).toEqual([502, 'provider_unavailable']);
    // Longer than one exchange: the grant was understood.
    expect([handshakes, Date.now() - began > 1_000, Date.now() - began < 5_000]).toEqual([
      1,
      true,
      true,
    ]);
    silent.close();
  });
});

describe('groups', () => {
  test('give roles by their mappings, which end at once when the mapping goes, and at the next login when the group is left', async () => {
    await app.deps.db('rate_limits').delete();
    const mapping = await admin(app).post('/api/rbac/provider-mappings', {
      providerId,
      externalGroup: 'net-admins',
      roleId: 'operator',
      tenantId: 'red',
    });
    const { body } = await login('ada', 'ada-secret');
    const ada = app.client.as({ token: body.accessToken });
    expect((await ada.get('/api/rbac/summary')).body.permissions['job:write'].tenantIds).toEqual([
      'red',
    ]);
    await admin(app).delete(`/api/rbac/provider-mappings/${mapping.body.id}`);
    expect((await ada.get('/api/jobs')).status).toBe(403);
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId,
      externalGroup: 'net-admins',
      roleId: 'viewer',
      tenantId: 'blue',
    });
    expect((await ada.get('/api/jobs')).status).toBe(200);

    const member = (operation: 'add' | 'delete') =>
      slapd.manage((client) =>
        client.modify(slapd.groupDn('net-admins'), [
          ...(operation === 'delete'
            ? [
                new Change({
                  operation: 'add',
                  modification: new Attribute({ type: 'member', values: [slapd.personDn('bob')] }),
                }),
              ]
            : []),
          new Change({
            operation,
            modification: new Attribute({ type: 'member', values: [slapd.personDn('ada')] }),
          }),
        ]),
      );
    await member('delete');
    expect((await ada.get('/api/jobs')).status).toBe(200);
    const next = await login('ada', 'ada-secret');
    // The new login has learnt it; the older session of the same person has no more than it.
    expect((await app.client.as({ token: next.body.accessToken }).get('/api/jobs')).status).toBe(
      403,
    );
    expect((await ada.get('/api/jobs')).status).toBe(403);
    await member('add');
  });

  test('that all lead to one tenant make sessions begin there; where the account stands no mapping decides', async () => {
    await app.deps.db('rate_limits').delete();
    const id = await provider();
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId: id,
      externalGroup: 'operators, east',
      roleId: 'operator',
      tenantId: 'east',
    });
    const { body } = await login('ada', 'ada-secret', id);
    expect(body.user.tenantId).toBe('platform');
    const job = await app.client
      .as({ token: body.accessToken })
      .post('/api/jobs', { type: 'core.echo', payload: {} });
    expect(job.body.tenantId).toBe('east');
  });
});

describe('a disabled', () => {
  test('account does not come in with the right password', async () => {
    await app.deps.db('rate_limits').delete();
    const { body } = await login('ada', 'ada-secret');
    await admin(app).put(`/api/users/${body.user.id}`, { enabled: false });
    expect(codeOf(await login('ada', 'ada-secret'))).toEqual([401, 'login_failed']);
    await admin(app).put(`/api/users/${body.user.id}`, { enabled: true });
    expect((await login('ada', 'ada-secret')).status).toBe(200);
  });

  test('provider lets nobody in, and ends the sessions; a deleted one disables its people', async () => {
    const id = await provider();
    const { body } = await login('ada', 'ada-secret', id);
    const ada = app.client.as({ token: body.accessToken });
    expect((await ada.get('/api/auth/session')).status).toBe(200);
    await admin(app).put(`/api/auth/providers/${id}`, { enabled: false });
    expect(codeOf(await ada.get('/api/auth/session'))).toEqual([401, 'session_invalid']);
    expect(codeOf(await login('ada', 'ada-secret', id))).toEqual([400, 'invalid_request']);
    await admin(app).put(`/api/auth/providers/${id}`, { enabled: true });
    expect(codeOf(await ada.get('/api/auth/session'))).toEqual([401, 'session_invalid']);
    await login('ada', 'ada-secret', id);
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId: id,
      externalGroup: 'net-admins',
      roleId: 'viewer',
    });
    expect((await admin(app).delete(`/api/auth/providers/${id}`)).status).toBe(204);
    expect((await admin(app).get(`/api/users/${body.user.id}`)).body.enabled).toBe(false);
    expect(
      (await admin(app).get(`/api/rbac/provider-mappings?providerId=${id}`)).body.items,
    ).toEqual([]);
    const explained = await admin(app).get(
      `/api/rbac/explain?userId=${body.user.id}&permission=job:read`,
    );
    expect(explained.body.allowed).toBe(false);
  });
});

describe('the test of a provider', () => {
  const names = (body: any) => body.steps.map((step: any) => `${step.name} ${step.status}`);

  test('names each step, finds a person and previews the roles', async () => {
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId,
      externalGroup: 'operators, east',
      roleId: 'auditor',
      tenantId: 'red',
    });
    const { body } = await run(providerId, { username: 'ada' });
    expect([body.ok, names(body)]).toEqual([
      true,
      ['resolve passed', 'connect passed', 'tls passed', 'bind passed', 'search passed'],
    ]);
    expect(body.groups).toEqual(['net-admins', 'operators, east']);
    expect(body.roles).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          externalGroup: 'operators, east',
          roleId: 'auditor',
          tenantId: 'red',
        }),
      ]),
    );
    const sample = await run(providerId, { sampleClaims: { groups: ['operators, east'] } });
    expect(sample.body.roles.map((role: any) => role.roleId)).toEqual(['auditor']);
  });

  test.each<[string, object, string]>([
    ['a name that does not resolve', { url: 'ldaps://directory.invalid' }, 'resolve'],
    ['a port where nobody listens', { url: 'ldaps://localhost:1' }, 'connect'],
    ['a certificate that is not trusted', { caCertificate: 'stranger' }, 'tls'],
    ['a wrong password', { bindPassword: 'wrong' }, 'bind'],
    ['a base that is not there', { userBaseDn: 'ou=none,dc=example,dc=net' }, 'search'],
    ['a private address that is not allowed', { allowPrivateNetwork: false }, 'resolve'],
  ])('stops at %s', async (_what, change, step) => {
    const strangers = {
      ...change,
      ...('caCertificate' in change && { caCertificate: (await selfSigned('other')).cert }),
    };
    const { body } = await run(await provider(strangers));
    expect(body.ok).toBe(false);
    expect(body.steps.find((each: any) => each.status === 'failed')?.name).toBe(step);
    expect(JSON.stringify(body)).not.toContain('manager-secret');
  });

  test('a directory that is away is 502, and does not count as a wrong password', async () => {
    await app.deps.db('rate_limits').delete();
    const id = await provider({ url: 'ldaps://localhost:1' });
    for (let i = 0; i < 12; i++)
      expect(codeOf(await login('ada', 'ada-secret', id))).toEqual([502, 'provider_unavailable']);
  });

  test.each([
    'ldaps://h:99999',
    'ldaps://exa mple',
    'ldaps://[fe80::1%25eth0]',
    'ldap://without.tls.example',
  ])('does not exist for %s', async (url) => {
    const answer = await admin(app).post('/api/auth/providers', {
      kind: 'ldap',
      name: url,
      config: { ...slapd.config, url },
    });
    expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([
      400,
      url.startsWith('ldap:') ? '/config/startTls' : '/config/url',
    ]);
  });
});
