import { beforeAll, expect, test } from '@jest/globals';
import type { ProviderRecord } from '../../../api/auth/providerRoutes.ts';
import type { PoolRecord } from '../../../api/runners/schemas.ts';
import type { SecretRecord } from '../../../api/secrets/schemas.ts';
import type { ServiceAccountRecord, TokenWithSecret } from '../../../api/auth/tokenSchemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestApp } from '../../support/app.ts';
import {
  backupCreator,
  restorer,
  restoreValidator,
  withBackups,
  type Validation,
} from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';
import { acceptedType, createHandRunner, createRunnerSecret } from '../../support/runner.ts';
import { createToken, textOf } from '../../support/tokens.ts';
import { createUser, login, PASSWORD, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups((fixture) => void ({ app, root } = fixture));

/** What ends something after the backup, and what must be true after the restore. */
type Ended = { end(): Promise<unknown>; check(): Promise<unknown> };

const ok = (client: TestClient) => client.get('/api/jobs').expect(200);
const refused = (client: TestClient) =>
  expectProblem(client.get('/api/jobs'), 401, 'token_invalid');
const bearer = (token: string) => app.client.as({ token });
const newToken = async (request?: object) => {
  const owner = await createUser(app, 'operator');
  return { owner, ...(await createToken(app, owner, request)) };
};
const put = (path: string, body: object) => root.put(path, body).expect(200);
const row = (table: string, id: string) => app.deps.db(table).where({ id }).first();

let accounts = 0;
async function newServiceAccount(ownerId: string) {
  const account = await root
    .post<ServiceAccountRecord>('/api/service-accounts', { name: `robot-${accounts++}`, ownerId })
    .expect(201);
  await root.post('/api/rbac/assignments', { userId: account.id, roleId: 'operator' }).expect(201);
  const token = await root
    .post<TokenWithSecret>(`/api/service-accounts/${account.id}/tokens`, { name: 'x' })
    .expect(201);
  return { ...account, client: bearer(textOf(token)) };
}

const newProvider = (name: string) =>
  root
    .post<ProviderRecord>('/api/auth/providers', {
      kind: 'ldap',
      name,
      config: {
        url: 'ldaps://directory.example.net',
        bindDn: 'cn=holdfast',
        bindPassword: `first of ${name}`,
        userBaseDn: 'dc=example,dc=net',
      },
    })
    .expect(201);

/** A person who signed in through a provider, with a token. */
async function newMember(name: string, externalGroups: string[] = []) {
  const provider = await newProvider(name);
  const person = await newToken();
  await app.deps.db('users').where({ id: person.owner.id }).update({
    provider_id: provider.id,
    external_id: name,
    external_groups: externalGroups,
    password_hash: null,
  });
  return { ...person, provider, path: `/api/auth/providers/${provider.id}` };
}

/** Everything that a restore of `access` could bring back, by title. */
const MEMBERS: Record<string, () => Promise<Ended>> = {
  'an account that was disabled, and its token': async () => {
    const { owner, client } = await newToken();
    return {
      end: () => put(`/api/users/${owner.id}`, { enabled: false }),
      async check() {
        await refused(client);
        expect((await login(app, owner.username)).status).toBe(401);
        await put(`/api/users/${owner.id}`, { enabled: true });
        await ok(client);
      },
    };
  },
  'a service account that was disabled': async () => {
    const { owner } = await newToken();
    const { id, client } = await newServiceAccount(owner.id);
    return {
      end: () => put(`/api/service-accounts/${id}`, { enabled: false }),
      check: () => refused(client),
    };
  },
  'an account that does not exist any more': async () => {
    const { owner, client } = await newToken();
    const { db } = app.deps;
    return {
      // As a restore of a backup from before it does.
      async end() {
        for (const table of ['grants', 'sessions'])
          await db(table).where({ user_id: owner.id }).del();
        await db('users').where({ id: owner.id }).del();
      },
      async check() {
        await refused(client);
        expect(await row('users', owner.id)).toMatchObject({ enabled: false, external_groups: [] });
      },
    };
  },
  'a password that was replaced': async () => {
    const person = await createUser(app, 'viewer');
    return {
      end: () =>
        root
          .post(`/api/users/${person.id}/reset-password`, { password: 'another correct battery' })
          .expect(200),
      async check() {
        expect((await login(app, person.username, PASSWORD)).status).toBe(401);
        expect((await login(app, person.username, 'another correct battery')).status).toBe(200);
        expect(await row('users', person.id)).toMatchObject({ must_change_password: true });
      },
    };
  },
  'a session that was ended': async () => {
    const { owner } = await newToken();
    return {
      end: () => owner.client.post('/api/auth/logout', {}).expect(204),
      check: () => expectProblem(owner.client.get('/api/jobs'), 401, 'session_invalid'),
    };
  },
  'a token that was revoked': async () => {
    const { id, client } = await newToken();
    return {
      end: () => root.delete(`/api/auth/tokens/${id}`).expect(204),
      check: () => refused(client),
    };
  },
  'a token that has expired': async () => {
    const { id, client } = await newToken();
    return {
      end: () => app.deps.db('tokens').where({ id }).update({ expires_at: new Date() }),
      check: () => refused(client),
    };
  },
  'a token that was disabled because nobody used it': async () => {
    const { id, client } = await newToken();
    return {
      end: () => app.deps.db('tokens').where({ id }).update({ disabled_at: new Date() }),
      check: () => refused(client),
    };
  },
  'a secret that was rotated': async () => {
    const { id, owner, client } = await newToken();
    let rotated: TestClient | undefined;
    return {
      async end() {
        const path = `/api/auth/tokens/${id}/rotate`;
        rotated = bearer(textOf(await owner.client.post<TokenWithSecret>(path, {}).expect(200)));
      },
      async check() {
        await refused(client);
        await ok(rotated as TestClient);
      },
    };
  },
  'the scope and the networks of a token that was narrowed': async () => {
    const { id, client } = await newToken({ allowedNetworks: ['0.0.0.0/0'] });
    const local = { 'x-forwarded-for': '192.0.2.7' };
    return {
      end: () =>
        put(`/api/auth/tokens/${id}`, {
          permissions: ['job:read'],
          allowedNetworks: ['192.0.2.0/24'],
        }),
      async check() {
        await expectProblem(client.get('/api/jobs'), 403, 'address_not_allowed');
        await client.get('/api/jobs', local).expect(200);
        await expectProblem(client.get('/api/webhooks', local), 403, 'permission_denied');
      },
    };
  },
  'a token whose row is missing': async () => {
    const { id, client } = await newToken();
    return {
      end: () => app.deps.db('tokens').where({ id }).del(),
      async check() {
        await refused(client);
        expect((await row('tokens', id)).disabled_at).not.toBeNull();
      },
    };
  },
  'the former owner of a service account': async () => {
    const [former, present] = [await createUser(app), await createUser(app)];
    const { id } = await newServiceAccount(former.id);
    return {
      end: () => put(`/api/service-accounts/${id}`, { ownerId: present.id }),
      async check() {
        expect((await row('users', id)).owner_id).toBe(present.id);
      },
    };
  },
  'a provider that was disabled': async () => {
    const { path, client, provider } = await newMember('Disabled');
    // Versions before 0.3 accepted text that PostgreSQL's JSON functions refuse.
    const config = JSON.stringify({ ...provider.config, bindDn: '\u0000 \ud800' });
    await app.deps.db('providers').where({ id: provider.id }).update({ config });
    return {
      end: () => put(path, { enabled: false }),
      async check() {
        await refused(client);
        expect(await root.get<ProviderRecord>(path).expect(200)).toMatchObject({ enabled: false });
      },
    };
  },
  'a provider that was deleted': async () => {
    const { path, client } = await newMember('Deleted');
    return {
      end: () => root.delete(path).expect(204),
      async check() {
        await refused(client);
        expect(await root.get<ProviderRecord>(path).expect(200)).toMatchObject({ enabled: false });
      },
    };
  },
  'the configuration of a provider, until someone enables it': async () => {
    const { path, client } = await newMember('Moved');
    const config = { url: 'ldaps://other.example.net', bindPassword: 'second' };
    return {
      end: () => put(path, { config }),
      async check() {
        await refused(client);
        expect(await root.get<ProviderRecord>(path).expect(200)).toMatchObject({
          enabled: false,
          config: { url: 'ldaps://directory.example.net' },
        });
      },
    };
  },
  'the secret of a provider': async () => {
    const { provider, path, client } = await newMember('Rotated');
    let secrets: unknown;
    return {
      async end() {
        await put(path, { config: { bindPassword: 'second' } });
        ({ secrets } = await row('providers', provider.id));
      },
      async check() {
        await ok(client);
        expect((await row('providers', provider.id)).secrets).toEqual(secrets);
      },
    };
  },
  'the acceptance of a job type that does not exist any more': async () => {
    const name = 'net.deleted';
    const types = () => app.deps.db('job_types').where({ name });
    await root.post('/api/pools', { name: 'ams' }).expect(201);
    const now = new Date();
    const definition = '{"payload":{}}';
    const accepted = { state: 'accepted', shape: 'x', definition, accepted_at: now };
    const dates = { created_at: now, updated_at: now, version: 1 };
    await app.deps.db('job_types').insert({ name, pool: 'ams', ...accepted, ...dates });
    return {
      end: () => types().del(),
      check: async () => expect(await types().pluck('state')).toEqual(['disabled']),
    };
  },
  'what a pool accepted before it was deleted, and its types': async () => {
    const { announce, leave } = await createHandRunner(app, 'hand.kept');
    const { db } = app.deps;
    const versions = () =>
      db('job_type_versions').where({ name: 'hand.kept' }).orderBy('digest').pluck('digest');
    await announce('second version');
    const known = await versions();
    await leave();
    return {
      async end() {
        await root.delete('/api/job-types/hand.kept').expect(204);
        await root.delete('/api/pools/hand').expect(204);
      },
      async check() {
        const { acceptTypes } = await root.get<PoolRecord>('/api/pools/hand').expect(200);
        expect([acceptTypes, await versions()]).toEqual([[], known]);
        expect(known).toHaveLength(2);
        await root.post('/api/jobs', { type: 'hand.kept', payload: {} }).expect(400);
      },
    };
  },
  'a job type that was disabled': async () => {
    const { type } = await acceptedType(app, 'kept');
    return {
      end: () => root.post(`/api/job-types/${type}/disable`).expect(200),
      check: async () =>
        expect(await root.get(`/api/job-types/${type}`).expect(200)).toMatchObject({
          state: 'disabled',
        }),
    };
  },
  'a token of runners that was revoked': async () => {
    const secret = await createRunnerSecret(app, 'revoked');
    const [{ id } = { id: '' }] = await app.deps.db('tokens').orderBy('id', 'desc').limit(1);
    const alive = () =>
      bearer(secret).post('/api/runner/alive', { runnerId: crypto.randomUUID(), pool: 'revoked' });
    await expectProblem(alive(), 404, 'unknown_runner');
    return {
      end: () => root.delete(`/api/auth/tokens/${id}`).expect(204),
      check: () => expectProblem(alive(), 401, 'token_invalid'),
    };
  },
  'the groups that a person has left': async () => {
    const { owner, provider, client } = await newMember('Groups', ['admins']);
    const mapping = { providerId: provider.id, externalGroup: 'admins', roleId: 'platform-admin' };
    await root.post('/api/rbac/provider-mappings', mapping).expect(201);
    await client.get('/api/users').expect(200);
    return {
      end: () => app.deps.db('users').where({ id: owner.id }).update({ external_groups: [] }),
      check: () => expectProblem(client.get('/api/users'), 403, 'permission_denied'),
    };
  },
};

const POOLS = ['ams', 'fra'];
const valueOf = async (id: string) =>
  app.deps.vault.open((await row('secrets', id)).sealed, `secret:${id}:value`);

async function newSecret(name: string) {
  const { id } = await root
    .post<SecretRecord>('/api/secrets', { name, value: `first of ${name}`, pools: POOLS })
    .expect(201);
  const path = `/api/secrets/${id}`;
  const pools = async () => (await root.get<SecretRecord>(path).expect(200)).pools;
  return { id, path, pools };
}

/** The same of the section `secrets`. */
const SECRETS: Record<string, () => Promise<Ended>> = {
  'the value of a secret that was replaced': async () => {
    const { id, path, pools } = await newSecret('replaced');
    return {
      end: () => put(path, { value: 'second', description: 'changed' }),
      async check() {
        expect([await valueOf(id), await pools()]).toEqual(['second', POOLS]);
        expect(await root.get(path).expect(200)).toMatchObject({ description: '' });
      },
    };
  },
  'a pool from which a secret was taken': async () => {
    const { path, pools } = await newSecret('narrowed');
    return {
      end: () => put(path, { pools: ['fra', 'lhr'] }),
      check: async () => expect(await pools()).toEqual(['fra']),
    };
  },
  'the pools of a secret that was deleted, though another has its name now': async () => {
    const { id, path, pools } = await newSecret('deleted');
    let newer: string | undefined;
    return {
      async end() {
        await root.delete(path).expect(204);
        newer = (await newSecret('deleted')).path;
      },
      async check() {
        expect([await pools(), await valueOf(id)]).toEqual([[], 'first of deleted']);
        await expectProblem(root.get(newer ?? ''), 404, 'not_found');
      },
    };
  },
};

/** What a restore of `access` does, as opposed to what it does not bring back. */
const EFFECTS: Record<string, () => Promise<Ended>> = {
  'assigns a role again that an account has lost': async () => {
    const { owner, client } = await newToken();
    return {
      async end() {
        const path = `/api/rbac/assignments?userId=${owner.id}`;
        const { items } = await root.get<Page<{ id: string }>>(path).expect(200);
        await root.delete(`/api/rbac/assignments/${items[0]?.id}`).expect(204);
        await expectProblem(client.get('/api/jobs'), 403, 'permission_denied');
      },
      check: () => ok(client),
    };
  },
  'leaves people signed in, and tokens that are newer than the backup as they are': async () => {
    const { owner } = await newToken();
    const path = { id: owner.id };
    let newer: TestClient | undefined;
    return {
      async end() {
        ({ client: newer } = await createToken(app, owner));
        const last_login_at = '2031-01-01T00:00:00Z';
        await app.deps.db('users').where(path).update({ display_name: 'Changed', last_login_at });
      },
      async check() {
        await ok(owner.client);
        await ok(newer as TestClient);
        const { display_name: name, last_login_at: lastLogin } = await row('users', owner.id);
        expect([name, lastLogin.toISOString()]).toEqual([
          owner.username,
          '2031-01-01T00:00:00.000Z',
        ]);
      },
    };
  },
  'disables an account that the backup has as disabled, and ends its sessions': async () => {
    const { owner, client } = await newToken();
    const { db } = app.deps;
    await db('users').where({ id: owner.id }).update({ enabled: false });
    return {
      async end() {
        await db('users').where({ id: owner.id }).update({ enabled: true });
        await ok(owner.client);
      },
      async check() {
        await refused(client);
        await expectProblem(owner.client.get('/api/jobs'), 401, 'session_invalid');
        expect(await db('sessions').where({ user_id: owner.id }).pluck('end_reason')).toEqual([
          'disabled',
        ]);
      },
    };
  },
};

const checks = new Map<string, () => Promise<unknown>>();
let validation: Validation;
let again: Validation;
let backupId: string;
beforeAll(async () => {
  const all = Object.entries({ ...MEMBERS, ...SECRETS, ...EFFECTS });
  const prepared: [string, Ended][] = [];
  for (const [title, prepare] of all) prepared.push([title, await prepare()]);
  const request = { mode: 'partial', sections: ['access', 'secrets'] };
  ({ id: backupId } = await backupCreator(() => root)(request));
  for (const [title, { end, check }] of prepared) {
    await end();
    checks.set(title, check);
  }
  const validate = () => restoreValidator(() => root)({ backupId });
  validation = await validate();
  await restorer(() => root)({ backupId, planHash: validation.planHash });
  again = await validate();
});

const checkOf = (title: string) => assertDefined(checks.get(title), title)();

test.each(Object.keys({ ...MEMBERS, ...SECRETS }))('a restore does not bring back %s', (title) =>
  checkOf(title),
);

test.each(Object.keys(EFFECTS))('a restore %s', (title) => checkOf(title));

test('a token cannot restore accounts', async () => {
  const { client } = await createToken(app, await createUser(app, 'platform-admin'));
  const request = client.post('/api/backup/restore', { backupId });
  await expectProblem(request, 403, 'token_not_accepted');
});

test('the preview says what stays disabled, and what is granted again', () => {
  expect([validation.valid, validation.errors]).toEqual([true, []]);
  const warnings = validation.warnings.map(({ code, table, message }) => [
    `${code} ${table}`,
    Number.parseInt(message),
  ]);
  expect(warnings).toEqual([
    ['records_deleted secrets', 1],
    ['not_enabled providers', 3],
    // Of the deleted provider, too.
    ['not_enabled users', 4],
    ['not_enabled secrets', 2],
    ['not_enabled tokens', 1],
    ['access_reinstated grants', 2],
  ]);
  const enabled = validation.preview.differences.flatMap(({ table, change, fields }) =>
    fields
      .filter(({ field }) => field === 'enabled')
      .map((field) => [table, change, field.restored]),
  );
  expect(enabled).toEqual([
    ['providers', 'created', 'false'],
    ['providers', 'changed', 'false'],
    ['users', 'created', 'false'],
    ['users', 'changed', 'false'],
  ]);
});

test('another restore would change nothing', () => {
  expect(again.preview.counts).toMatchObject({ created: 0, changed: 0, deleted: 0 });
});
