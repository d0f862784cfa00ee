import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { ServiceAccountRecord, TokenWithSecret } from '../../../api/auth/tokenSchemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { createToken, textOf } from '../../support/tokens.ts';
import { admin, createUser, type Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp();
  root = admin(app);
});
afterAll(() => app.stop());

const OPERATOR = { roleId: 'operator', tenantId: 'red' };
const LONG_SLEEP = { type: 'core.sleep', payload: { durationMs: 60_000 } };

const readJob = (id: string) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200);

/** Creates a long job and waits until its first attempt runs. */
async function runningJob(client: TestClient): Promise<string> {
  const { id } = await client.post<JobRecord>('/api/jobs', LONG_SLEEP).expect(201);
  await eventually(
    () => readJob(id),
    ({ status }) => status === 'running',
  );
  return id;
}

const ended = (id: string) =>
  root.get<JobRecord>(`/api/jobs/${id}`, { prefer: 'wait=20' }).expect(200);

async function serviceAccount(): Promise<{ id: string; client: TestClient }> {
  const owner = await createUser(app, OPERATOR);
  const { id } = await root
    .post<ServiceAccountRecord>('/api/service-accounts', {
      name: `robot of ${owner.username}`,
      tenantId: 'red',
      ownerId: owner.id,
    })
    .expect(201);
  await root.post('/api/rbac/assignments', { ...OPERATOR, userId: id }).expect(201);
  const made = await root
    .post<TokenWithSecret>(`/api/service-accounts/${id}/tokens`, { name: 'test' })
    .expect(201);
  return { id, client: app.client.as({ token: textOf(made) }) };
}

describe('a running job is cancelled', () => {
  test('when its token is revoked; one that its owner started is not', async () => {
    const owner = await createUser(app, OPERATOR);
    const token = await createToken(app, owner);
    const [byToken, byOwner] = [await runningJob(token.client), await runningJob(owner.client)];
    await owner.client.delete(`/api/auth/tokens/${token.id}`).expect(204);
    expect(await ended(byToken)).toMatchObject({ status: 'cancelled', attempts: 1 });
    expect(await readJob(byOwner)).toMatchObject({ status: 'running', cancelRequestedAt: null });
    const { items } = await root
      .get<Page<AuditEntryRecord>>(`/api/audit?subjectId=${byToken}&action=job.cancel`)
      .expect(200);
    // The newest entry is that of the end of its attempt.
    expect(items.at(-1)).toMatchObject({
      tenantId: 'red',
      actorId: 'system',
      after: { cancelRequested: true, reason: 'authority_revoked' },
    });
  });

  test('when its token revokes itself', async () => {
    const { client } = await createToken(app, await createUser(app, OPERATOR));
    const id = await runningJob(client);
    await client.delete('/api/auth/token').expect(204);
    expect((await ended(id)).status).toBe('cancelled');
  });

  test('when the account is disabled: that of a person, and that of a program', async () => {
    const person = await createUser(app, OPERATOR);
    const robot = await serviceAccount();
    const [ofPerson, ofRobot] = [await runningJob(person.client), await runningJob(robot.client)];
    await root.put(`/api/users/${person.id}`, { enabled: false }).expect(200);
    await root.put(`/api/service-accounts/${robot.id}`, { enabled: false }).expect(200);
    expect((await ended(ofPerson)).status).toBe('cancelled');
    expect((await ended(ofRobot)).status).toBe('cancelled');
  });

  test('when the provider of the account is disabled', async () => {
    const { client, id: userId } = await createUser(app, OPERATOR);
    const provider = await root
      .post<{ id: string }>('/api/auth/providers', {
        ...{ kind: 'ldap', name: 'Directory' },
        config: {
          url: 'ldaps://ldap.example.net',
          userBaseDn: 'dc=x',
          bindDn: 'cn=x',
          bindPassword: 'x',
        },
      })
      .expect(201);
    const id = await runningJob(client);
    await app.deps
      .db('users')
      .where({ id: userId })
      .update({ provider_id: provider.id, external_id: 'x', password_hash: null });
    await root.put(`/api/auth/providers/${provider.id}`, { enabled: false }).expect(200);
    expect((await ended(id)).status).toBe('cancelled');
  });

  test('when a restore has deleted the account', async () => {
    const user = await createUser(app, OPERATOR);
    const id = await runningJob(user.client);
    await app.deps.db('sessions').where({ user_id: user.id }).delete();
    await app.deps.db('grants').where({ user_id: user.id }).delete();
    await app.deps.db('users').where({ id: user.id }).delete();
    await app.deps.reconcile.reconcileJobs(new AbortController().signal);
    expect((await ended(id)).status).toBe('cancelled');
  });

  test('by the reconciler, if the process ended after the token was revoked', async () => {
    const token = await createToken(app, await createUser(app, OPERATOR));
    const id = await runningJob(token.client);
    await app.deps
      .db('tokens')
      .where({ id: token.id })
      .update({ revoked_at: new Date(), revoked_by: 'system' });
    await app.deps.reconcile.reconcileJobs(new AbortController().signal);
    expect((await ended(id)).status).toBe('cancelled');
  });

  test('but not when its token expires or is disabled because nobody uses it', async () => {
    const token = await createToken(app, await createUser(app, OPERATOR));
    const id = await runningJob(token.client);
    const past = new Date(Date.now() - 1_000);
    await app.deps
      .db('tokens')
      .where({ id: token.id })
      .update({ expires_at: past, disabled_at: past });
    await app.deps.reconcile.reconcileJobs(new AbortController().signal);
    expect(await readJob(id)).toMatchObject({ status: 'running', cancelRequestedAt: null });
  });
});
