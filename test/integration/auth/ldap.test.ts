import { connect, createServer, type AddressInfo } from 'node:net';
import { Attribute, Change } from 'ldapts';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { selfSigned } from '../../support/certificate.ts';
import { admin, seedTenant, type Page } from '../../support/users.ts';
import { startSlapd } from '../../support/slapd.ts';
import type { ProviderRecord, TestReport } from '../../../api/auth/providerRoutes.ts';
import type { MappingRecord } from '../../../api/access/schemas.ts';
import type { TokenResponse, UserRecord } from '../../../api/auth/schemas.ts';
import type { Explanation, PermissionSummary } from '../../../api/access/routes.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { describeWith } from '../../support/programs.ts';

describeWith('slapd', 'LDAP', () => {
  let app: TestApp;
  let slapd: Awaited<ReturnType<typeof startSlapd>>;
  let providerId: string;
  beforeAll(async () => {
    [app, slapd] = await Promise.all([
      startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_OUTBOUND_ALLOW: '' }, { idle: true }),
      startSlapd(),
    ]);
    providerId = await createProvider();
    for (const tenant of ['red', 'blue', 'east']) await seedTenant(app, tenant);
  });
  afterAll(() => Promise.all([app.stop(), slapd.stop()]));

  let providerCount = 0;
  async function createProvider(change: object = {}): Promise<string> {
    const answer = await admin(app).post<ProviderRecord>('/api/auth/providers', {
      kind: 'ldap',
      name: `Directory ${providerCount++}`,
      config: { ...slapd.config, ...change },
    });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    return answer.body.id;
  }
  const login = (username: string, password: string, id = providerId) =>
    app.client
      .as({ token: null })
      .post<TokenResponse>('/api/auth/login/ldap', { providerId: id, username, password });
  const testProvider = (id: string, body: object = {}) =>
    admin(app).post<TestReport>(`/api/auth/providers/${id}/test`, body);

  describe('a login', () => {
    test('verifies the password and reads name, e-mail address and groups', async () => {
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

    test('works with StartTLS, and with memberOf instead of a search for groups', async () => {
      const { groupBaseDn, ...rest } = slapd.config;
      const answer = await admin(app).post<ProviderRecord>('/api/auth/providers', {
        kind: 'ldap',
        name: 'StartTLS',
        config: { ...rest, url: slapd.urls.plain, startTls: true },
      });
      const { body } = await login('ada', 'ada-secret', answer.body.id);
      expect(body.user.groups).toEqual(['net-admins', 'operators, east']);
      expect(body.user.id).not.toBe((await login('ada', 'ada-secret')).body.user.id);
    });

    test('with memberOf counts only the groups below a base, if there is one', async () => {
      const { groupBaseDn, ...rest } = slapd.config;
      const groupsOf = async (uid: string, memberOf: object) => {
        const config = { ...rest, ...memberOf };
        const name = `memberOf ${uid} ${JSON.stringify(memberOf)}`;
        const provider = await admin(app)
          .post<ProviderRecord>('/api/auth/providers', { kind: 'ldap', name, config })
          .expect(201);
        return (await login(uid, `${uid}-secret`, provider.id)).body.user.groups;
      };
      const groupsOfBob = (memberOf: object) => groupsOf('bob', memberOf);
      expect(await groupsOfBob({})).toEqual(['net-admins', 'operators, east']);
      expect(await groupsOfBob({ memberOfBaseDn: 'OU=Groups, DC=example, DC=net' })).toEqual([
        'operators, east',
      ]);
      // Another part with the same first value is not the base.
      expect(await groupsOf('eve*', {})).toEqual(['operators, east']);
      expect(await groupsOf('eve*', { memberOfBaseDn: 'ou=groups,dc=example,dc=net' })).toEqual([]);
      const ofGroup = 'cn=net-admins,ou=projects,dc=example,dc=net';
      expect(await groupsOfBob({ memberOfBaseDn: ofGroup })).toEqual([]);
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
      const problem = await expectProblem(login(username, password), 401, 'login_failed');
      expect(problem.detail).toBe('User name or password is wrong.');
    });

    test('treats filter characters in user names literally', async () => {
      expect((await login('eve*', 'eve*-secret')).body.user.username).toBe('eve*');
      expect((await login('o(pen)', 'o(pen)-secret')).body.user.username).toBe('o(pen)');
    });

    test('is throttled', async () => {
      const answers = await Promise.all(Array.from({ length: 14 }, () => login('bob', 'wrong')));
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(4);
      await login('bob', 'bob-secret').expect(429);
    });

    test('fails if something is inserted before the TLS of StartTLS begins', async () => {
      await app.deps.db('rate_limits').delete();
      // BindResponse "success" for message 3 without its last byte, which the true answer adds.
      const inserted = Buffer.from('300d02010361080a01000400' + '0401', 'hex');
      const target = Number(new URL(slapd.urls.plain.replace('ldap:', 'http:')).port);
      const proxyPort = async (suffix: Buffer) => {
        const proxy = createServer((socket) => {
          const onward = connect(target, '127.0.0.1');
          socket.on('error', () => onward.destroy()).pipe(onward);
          onward
            .on('error', () => socket.destroy())
            .once('data', (answer) => {
              socket.write(Buffer.concat([answer, suffix]));
              onward.pipe(socket);
            });
        });
        await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
        proxy.unref();
        return (proxy.address() as AddressInfo).port;
      };
      const loginThrough = async (suffix: Buffer, password: string) => {
        const url = `ldap://localhost:${await proxyPort(suffix)}`;
        return login('ada', password, await createProvider({ url, startTls: true }));
      };
      expect((await loginThrough(Buffer.alloc(0), 'ada-secret')).status).toBe(200);
      expect((await loginThrough(Buffer.alloc(0), 'wrong')).status).toBe(401);
      for (const suffix of [
        inserted,
        inserted.subarray(0, 1),
        Buffer.from('30050201036100', 'hex'),
      ])
        expect((await loginThrough(suffix, 'wrong')).status).toBe(502);
    });

    test('uses as many connections and binds for an unknown name as for a known one, and ends alike in an outage', async () => {
      await app.deps.db('rate_limits').delete();
      const target = Number(new URL(slapd.urls.secure.replace('ldaps:', 'https:')).port);
      let connections = 0;
      let most = 2;
      const proxy = createServer((socket) => {
        connections += 1;
        if (connections > most) return void socket.destroy();
        const onward = connect(target, '127.0.0.1');
        for (const [from, to] of [
          [socket, onward],
          [onward, socket],
        ] as const)
          from.on('error', () => to.destroy()).pipe(to);
      });
      await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
      const id = await createProvider({
        url: `ldaps://localhost:${(proxy.address() as AddressInfo).port}`,
      });
      const counted = async (name: string, status: number) => {
        connections = 0;
        await login(name, 'wrong', id).expect(status);
        return connections;
      };
      expect([await counted('ada', 401), await counted('stranger', 401)]).toEqual([2, 2]);
      const countedFailures = () =>
        app.deps.db('rate_limits').orderBy('key').select('key', 'points');
      const before = await countedFailures();
      // The directory goes away between the search and the bind.
      most = 1;
      expect([await counted('ada', 502), await counted('stranger', 502)]).toEqual([2, 2]);
      expect(await countedFailures()).toEqual(before);
      proxy.close();
    });

    test.each([
      ['its name', 'localhost'],
      ['an address', '127.0.0.1'],
    ])('does not connect to a private address unless allowed, by %s', async (_what, host) => {
      const id = await createProvider({
        url: slapd.urls.secure.replace('localhost', host),
        allowPrivateNetwork: false,
      });
      await expectProblem(login('ada', 'ada-secret', id), 502, 'provider_unavailable');
    });

    test('is refused if too many wait for a directory that does not answer, another is not', async () => {
      const silent = createServer((socket) => void socket.on('error', () => undefined).resume());
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      const id = await createProvider({
        url: `ldap://localhost:${(silent.address() as AddressInfo).port}`,
        startTls: true,
        timeoutMs: 500,
      });
      const waiting = Array.from({ length: 16 }, (_, n) => login(`user-${n}`, 'secret', id));
      const first = await Promise.race(waiting);
      expect([first.status, first.headers.get('retry-after')]).toEqual([429, '2']);
      await login('ada', 'ada-secret').expect(200);
      const statuses = (await Promise.all(waiting)).map(({ status }) => status).sort();
      expect(statuses).toEqual([429, ...Array<number>(15).fill(502)]);
      silent.close();
      await app.deps.db('rate_limits').delete();
    });

    test('does not hang on a server that never completes the TLS handshake', async () => {
      // It accepts StartTLS (RFC 4511, 4.14) and sends nothing more.
      let handshakes = 0;
      const silent = createServer((socket) => {
        socket
          .on('error', () => undefined)
          .once('data', (asked) => {
            handshakes += 1;
            // The response contains the message id of the request.
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
      const id = await createProvider({
        url: `ldap://localhost:${(silent.address() as AddressInfo).port}`,
        startTls: true,
        timeoutMs: 500,
      });
      const began = Date.now();
      await expectProblem(login('ada', 'ada-secret', id), 502, 'provider_unavailable');
      // Longer than one request: the client understood that StartTLS was accepted.
      expect([handshakes, Date.now() - began > 1_000, Date.now() - began < 5_000]).toEqual([
        1,
        true,
        true,
      ]);
      silent.close();
    });
  });

  describe('groups', () => {
    test('grant roles by mappings, until the mapping is deleted or the group is left at the next login', async () => {
      await app.deps.db('rate_limits').delete();
      const mapping = await admin(app).post<MappingRecord>('/api/rbac/provider-mappings', {
        providerId,
        externalGroup: 'net-admins',
        roleId: 'operator',
        tenantId: 'red',
      });
      const { body } = await login('ada', 'ada-secret');
      const ada = app.client.as({ token: body.accessToken });
      expect(
        (await ada.get<PermissionSummary>('/api/rbac/summary')).body.permissions['job:write']
          ?.tenantIds,
      ).toEqual(['red']);
      await admin(app).delete(`/api/rbac/provider-mappings/${mapping.body.id}`);
      await ada.get('/api/jobs').expect(403);
      await admin(app).post('/api/rbac/provider-mappings', {
        providerId,
        externalGroup: 'net-admins',
        roleId: 'viewer',
        tenantId: 'blue',
      });
      await ada.get('/api/jobs').expect(200);

      const member = (operation: 'add' | 'delete') =>
        slapd.asManager((client) =>
          client.modify(slapd.groupDn('net-admins'), [
            ...(operation === 'delete'
              ? [
                  new Change({
                    operation: 'add',
                    modification: new Attribute({ type: 'member', values: [slapd.userDn('bob')] }),
                  }),
                ]
              : []),
            new Change({
              operation,
              modification: new Attribute({ type: 'member', values: [slapd.userDn('ada')] }),
            }),
          ]),
        );
      await member('delete');
      await ada.get('/api/jobs').expect(200);
      const next = await login('ada', 'ada-secret');
      // The new login updates the groups for all sessions of the user.
      await app.client.as({ token: next.body.accessToken }).get('/api/jobs').expect(403);
      await ada.get('/api/jobs').expect(403);
      await member('add');
    });

    test('that are mapped in one tenant only determine the tenant of sessions, not of the user', async () => {
      await app.deps.db('rate_limits').delete();
      const id = await createProvider();
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
        .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} });
      expect(job.body.tenantId).toBe('east');
    });
  });

  describe('a disabled', () => {
    test('account cannot sign in with the right password', async () => {
      await app.deps.db('rate_limits').delete();
      const { body } = await login('ada', 'ada-secret');
      await admin(app).put(`/api/users/${body.user.id}`, { enabled: false });
      await expectProblem(login('ada', 'ada-secret'), 401, 'login_failed');
      await admin(app).put(`/api/users/${body.user.id}`, { enabled: true });
      await login('ada', 'ada-secret').expect(200);
    });

    test('provider ends its sessions and rejects logins; a deleted one disables its users', async () => {
      const id = await createProvider();
      const { body } = await login('ada', 'ada-secret', id);
      const ada = app.client.as({ token: body.accessToken });
      await ada.get('/api/auth/session').expect(200);
      await admin(app).put(`/api/auth/providers/${id}`, { enabled: false });
      await expectProblem(ada.get('/api/auth/session'), 401, 'session_invalid');
      await expectProblem(login('ada', 'ada-secret', id), 400, 'invalid_request');
      await admin(app).put(`/api/auth/providers/${id}`, { enabled: true });
      await expectProblem(ada.get('/api/auth/session'), 401, 'session_invalid');
      await login('ada', 'ada-secret', id);
      await admin(app).post('/api/rbac/provider-mappings', {
        providerId: id,
        externalGroup: 'net-admins',
        roleId: 'viewer',
      });
      await admin(app).delete(`/api/auth/providers/${id}`).expect(204);
      expect((await admin(app).get<UserRecord>(`/api/users/${body.user.id}`)).body.enabled).toBe(
        false,
      );
      expect(
        (await admin(app).get<Page<MappingRecord>>(`/api/rbac/provider-mappings?providerId=${id}`))
          .body.items,
      ).toEqual([]);
      const explained = await admin(app).get<Explanation>(
        `/api/rbac/explain?userId=${body.user.id}&permission=job:read`,
      );
      expect(explained.body.allowed).toBe(false);
    });
  });

  describe('the test of a provider', () => {
    const stepResults = ({ steps }: TestReport) =>
      steps.map((step) => `${step.name} ${step.status}`);

    test('reports each step, finds a person and previews the roles', async () => {
      await admin(app).post('/api/rbac/provider-mappings', {
        providerId,
        externalGroup: 'operators, east',
        roleId: 'auditor',
        tenantId: 'red',
      });
      const { body } = await testProvider(providerId, { username: 'ada' });
      expect([body.ok, stepResults(body)]).toEqual([
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
      const sample = await testProvider(providerId, {
        sampleClaims: { groups: ['operators, east'] },
      });
      expect(sample.body.roles.map((role) => role.roleId)).toEqual(['auditor']);
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
      const { body } = await testProvider(await createProvider(strangers));
      expect(body.ok).toBe(false);
      expect(body.steps.find((each) => each.status === 'failed')?.name).toBe(step);
      expect(JSON.stringify(body)).not.toContain('manager-secret');
    });

    test('an unavailable directory is 502, and does not count as a failed attempt', async () => {
      await app.deps.db('rate_limits').delete();
      const id = await createProvider({ url: 'ldaps://localhost:1' });
      for (let i = 0; i < 12; i++)
        await expectProblem(login('ada', 'ada-secret', id), 502, 'provider_unavailable');
    });

    test.each([
      'ldaps://h:99999',
      'ldaps://exa mple',
      'ldaps://[fe80::1%25eth0]',
      'ldap://without.tls.example',
    ])('does not exist for %s', async (url) => {
      await expectInvalid(
        admin(app).post<ProviderRecord>('/api/auth/providers', {
          kind: 'ldap',
          name: url,
          config: { ...slapd.config, url },
        }),
        url.startsWith('ldap:') ? '/config/startTls' : '/config/url',
      );
    });
  });
});
