import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { UserWithPassword } from '../../../api/auth/schemas.ts';
import type { TokenRecord, TokenWithSecret } from '../../../api/auth/tokenSchemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin, createUser, login } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const bearer = ({ token }: TokenWithSecret) =>
  app.client.as({ token: assertDefined(token ?? undefined, 'token') });

/** What is stored of the requests with a key. */
const storedAnswers = async (key: string) =>
  (await app.deps.db('idempotency_keys').where({ key })).map(({ answer }) => answer);

test('a rotation that is repeated with its Idempotency-Key leaves both secrets valid', async () => {
  const owner = await createUser(app, { roleId: 'viewer', tenantId: 'red' });
  const made = await owner.client
    .post<TokenWithSecret>('/api/auth/tokens', { name: 'ci' })
    .expect(201);
  const rotate = (headers: Record<string, string>) =>
    owner.client.post<TokenWithSecret>(
      `/api/auth/tokens/${made.id}/rotate`,
      { overlapSeconds: 3_600 },
      headers,
    );
  const key = { 'idempotency-key': 'rotation' };
  const rotated = await rotate(key).expect(200);
  const again = await rotate(key);
  expect(again).toMatchObject({ status: 200, body: { id: made.id, token: null, version: 2 } });
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  for (const secret of [made, rotated]) await bearer(secret).get('/api/auth/token').expect(200);
  expect(await storedAnswers('rotation')).toEqual([null]);

  await expectProblem(rotate({ 'if-match': '"1"' }), 412, 'version_conflict');
  await bearer(made).get('/api/auth/token').expect(200);
  await rotate({ 'if-match': '"2"' }).expect(200);
  const path = `/api/auth/tokens/${made.id}`;
  expect((await owner.client.get<TokenRecord>(path).expect(200)).version).toBe(3);
});

test('a reset that is repeated with its Idempotency-Key keeps the one-time password', async () => {
  const { id, username } = await createUser(app);
  const reset = () =>
    admin(app)
      .post<UserWithPassword>(`/api/users/${id}/reset-password`, {}, { 'idempotency-key': 'reset' })
      .expect(200);
  const { oneTimePassword } = await reset();
  expect(await reset()).toMatchObject({ id, oneTimePassword: null });
  expect(await storedAnswers('reset')).toEqual([null]);
  await login(app, username, oneTimePassword).expect(200);
});
