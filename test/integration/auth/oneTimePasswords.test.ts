import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { UserRecord, UserWithPassword } from '../../../api/auth/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin, createUser, login, PASSWORD } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

type Login = { username: string; oneTimePassword: string };

const hoursAhead = (date: Date) => Math.round((date.getTime() - Date.now()) / 3_600_000);

const loginOf = ({ username, oneTimePassword }: Pick<UserWithPassword, keyof Login>): Login => ({
  username,
  oneTimePassword: assertDefined(oneTimePassword, 'one-time password'),
});

async function created(): Promise<Login> {
  const username = `created-${Date.now()}`;
  return loginOf(await admin(app).post<UserWithPassword>('/api/users', { username }).expect(201));
}

async function reset(): Promise<Login> {
  const { id } = await createUser(app);
  return loginOf(
    await admin(app).post<UserWithPassword>(`/api/users/${id}/reset-password`, {}).expect(200),
  );
}

async function typed(): Promise<Login> {
  const username = `typed-${Date.now()}`;
  const body = { username, password: 'typed by someone else' };
  await admin(app).post<UserWithPassword>('/api/users', body).expect(201);
  return { username, oneTimePassword: body.password };
}

async function recovered(options: { create: boolean }): Promise<Login> {
  const username = options.create ? `rescue-${Date.now()}` : (await createUser(app)).username;
  const login = await app.deps.bootstrapAdmin.recover(username, {
    ...options,
    promote: !options.create,
  });
  if ('refusal' in login) throw new Error(login.refusal);
  return login;
}

test.each<[string, () => Promise<Login>]>([
  ['a new account', created],
  ['a password that is typed for a new account', typed],
  ['a reset', reset],
  ['a new administrator of the command line', () => recovered({ create: true })],
  ['a recovered administrator', () => recovered({ create: false })],
])('the one-time password of %s is valid for 72 hours', async (_what, make) => {
  const { username, oneTimePassword } = await make();
  const row = app.deps.db('users').where({ username });
  expect(hoursAhead((await row.clone().first()).password_expires_at)).toBe(72);
  await login(app, username, oneTimePassword).expect(200);
  await row.clone().update({ password_expires_at: new Date(Date.now() - 1) });
  const problem = await expectProblem(login(app, username, oneTimePassword), 401, 'login_failed');
  expect(problem.detail).toMatch(/has expired/);
  const entry = await app.deps
    .db('audit_entries')
    .where({ action: 'login.failed' })
    .orderBy('id', 'desc')
    .first();
  expect(entry.after).toMatchObject({ username, reason: 'one-time password expired' });
  const wrong = await expectProblem(login(app, username, 'wrong'), 401, 'login_failed');
  expect(wrong.detail).toBe('User name or password is wrong.');
});

test('one that an earlier version has set is valid for 72 hours after the change of the account', async () => {
  const { username, oneTimePassword } = await created();
  const row = app.deps.db('users').where({ username });
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  await row.clone().update({ password_expires_at: null, updated_at: hoursAgo(71) });
  await login(app, username, oneTimePassword).expect(200);
  await row.clone().update({ updated_at: hoursAgo(73) });
  await expectProblem(login(app, username, oneTimePassword), 401, 'login_failed');
});

test('one that an earlier version resets does not end with the former one', async () => {
  const { username } = await created();
  const { username: other, oneTimePassword } = await typed();
  const { db } = app.deps;
  const { password_hash } = await db('users').where({ username: other }).first();
  const row = db('users').where({ username });
  await row.clone().update({ password_expires_at: new Date(0) });
  // It does not know the column.
  await row.clone().update({ password_hash, updated_at: new Date() });
  expect((await row.clone().first()).password_expires_at).toBeNull();
  await login(app, username, oneTimePassword).expect(200);
});

test('the password that replaces it does not expire', async () => {
  const { username, oneTimePassword } = await created();
  const { accessToken } = await login(app, username, oneTimePassword).expect(200);
  await app.client
    .as({ token: accessToken })
    .post('/api/auth/password', { currentPassword: oneTimePassword, newPassword: PASSWORD })
    .expect(204);
  const row = app.deps.db('users').where({ username });
  expect((await row.clone().first()).password_expires_at).toBeNull();
  await row.clone().update({ updated_at: new Date(0) });
  await login(app, username, PASSWORD).expect(200);
});

test('an account shows until when its one-time password is valid, and a change of the account does not extend it', async () => {
  const { username, oneTimePassword } = await created();
  const row = app.deps.db('users').where({ username });
  const updatedAt = new Date(Date.now() - 73 * 3_600_000);
  await row.clone().update({ password_expires_at: null, updated_at: updatedAt });
  const { id } = await row.clone().first();
  const path = `/api/users/${id}`;
  const read = () => admin(app).get<UserRecord>(path).expect(200);
  const end = new Date(updatedAt.getTime() + 72 * 3_600_000).toISOString();
  expect((await read()).passwordExpiresAt).toBe(end);
  const changed = await admin(app)
    .put<UserRecord>(path, { ...(await read()), displayName: 'Renamed' })
    .expect(200);
  expect(changed).toMatchObject({ displayName: 'Renamed', passwordExpiresAt: end });
  await expectProblem(login(app, username, oneTimePassword), 401, 'login_failed');
  const other = await createUser(app);
  expect(
    await admin(app).put<UserRecord>(`/api/users/${other.id}`, { displayName: 'O' }).expect(200),
  ).toMatchObject({ mustChangePassword: false, passwordExpiresAt: null });
});
