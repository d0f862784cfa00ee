import type { TokenWithSecret } from '../../api/auth/tokenSchemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { TestApp } from './app.ts';
import type { TestUser } from './users.ts';

/** The text of a token that was just created or rotated. */
export const textOf = ({ token }: TokenWithSecret): string => assertDefined(token, 'token');

/** Creates a token of a user who is signed in, and a client that uses it. */
export async function createToken(app: TestApp, { client }: TestUser, request: object = {}) {
  const made = await client
    .post<TokenWithSecret>('/api/auth/tokens', { name: 'test', ...request })
    .expect(201);
  return { ...made, text: textOf(made), client: app.client.as({ token: textOf(made) }) };
}
