import { Type } from 'typebox';
import { TOKEN_KINDS } from '../../domain/auth/tokenText.ts';
import { TOKEN_STATUSES, type TokenDetails } from '../../domain/auth/tokens.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { AccessReport } from '../../services/access/report.ts';
import type { ApiTokens, NewToken } from '../../services/auth/apiTokens/tokens.ts';
import { expectedVersion } from '../http/etag.ts';
import { choiceField, idField, severalOf, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { parseTime } from '../http/queryTime.ts';
import { created, noContent, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id, TenantId } from '../http/schemas.ts';
import { secretView, tokenView } from './tokenPresenter.ts';
import {
  CurrentToken,
  RotationRequest,
  TokenChange,
  TokenRecord,
  TokenRequest,
  TokenWithSecret,
} from './tokenSchemas.ts';

const tag = 'Tokens';

export const MAKES_TOKENS = 'it makes a token';

const OneToken = Type.Object({ id: Id('tok') }, closed);
const TOKENS = defineList({
  name: 'tokens',
  id: 'tok',
  item: TokenRecord,
  title: 'TokenList',
  fields: {
    kind: choiceField(TOKEN_KINDS, { title: 'TokenKind' }),
    userId: idField(Id('usr')),
    tenantId: idField(TenantId()),
    expiresAt: timeField({ sort: true }),
    createdAt: timeField(),
  },
  own: {
    status: severalOf(
      Type.Enum([...TOKEN_STATUSES], { title: 'TokenStatus' }),
      'Tokens with one of these statuses.',
    ),
  },
});

/** The list of the tokens that a caller may see, or of those of one account. */
export const tokenList = (apiTokens: ApiTokens) => ({
  query: TOKENS.query,
  responses: { 200: TOKENS.schema },
  respond: (caller: Caller, query: object, ownerId?: string): Promise<HttpResponse> =>
    TOKENS.respond(
      query,
      (request, { status }) =>
        apiTokens.list(
          caller,
          { ...(ownerId !== undefined && { ownerId }), ...(status && { status }) },
          request,
        ),
      tokenView,
    ),
});

/** The limits of a request as the service takes them. */
export const limitsOf = <B extends { expiresAt?: string }>({ expiresAt, ...body }: B) => ({
  ...body,
  ...(expiresAt !== undefined && { expiresAt: parseTime('expiresAt', expiresAt, 'body') }),
});

const noStore = { 'cache-control': 'no-store' };

const tokenResponse = (token: TokenDetails): HttpResponse => ok(tokenView(token));

/** What a request has made; `secret` is null in a repeated one. */
type MadeToken = Omit<NewToken, 'secret'> & { secret: string | null };

const rotatedResponse = (made: MadeToken): HttpResponse => ({
  ...ok(secretView(made), noStore),
  containsSecret: true,
});

/** The response to a request that made a token. */
export const newTokenResponse = (made: MadeToken): HttpResponse => ({
  ...created(`/api/auth/tokens/${made.token.id}`, secretView(made), noStore),
  containsSecret: true,
});

type Deps = { apiTokens: ApiTokens; accessReport: AccessReport };

/** The routes about the token of the request. */
const currentTokenRoutes = ({ apiTokens, accessReport }: Deps): Route[] => [
  route({
    method: 'GET',
    path: '/api/auth/token',
    operationId: 'getCurrentToken',
    tag,
    signedIn: 'it returns the token of the request',
    allowsRunners: true,
    summary: 'Get the token of the request',
    description: 'A request without an API token gets 401 `token_invalid`.',
    responses: { 200: CurrentToken },
    handle: async ({ caller }) => {
      const token = await apiTokens.current(caller);
      return ok({ ...tokenView(token), heldPermissions: accessReport.heldPermissions(caller) });
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/auth/token',
    operationId: 'revokeCurrentToken',
    tag,
    signedIn: 'it revokes the token of the request',
    allowsRunners: true,
    allowsReadOnly: true,
    summary: 'Revoke the token of the request',
    responses: { 204: null },
    handle: async ({ caller }) => {
      await apiTokens.revokeCurrent(caller);
      return noContent();
    },
  }),
];

/** Routes for API tokens. */
export const tokenRoutes = (deps: Deps): Route[] => {
  const { apiTokens } = deps;
  const list = tokenList(apiTokens);
  return [
    ...currentTokenRoutes(deps),
    route({
      method: 'GET',
      path: '/api/auth/tokens',
      operationId: 'listTokens',
      tag,
      signedIn: 'it returns the tokens of the caller; those of others with `user:read`',
      tokenPermissions: ['user:read', 'user:write'],
      summary: 'List API tokens',
      query: list.query,
      responses: list.responses,
      handle: ({ caller, query }) => list.respond(caller, query),
    }),
    route({
      method: 'POST',
      path: '/api/auth/tokens',
      operationId: 'createToken',
      tag,
      session: 'only people make tokens for themselves',
      refusesTokens: MAKES_TOKENS,
      summary: 'Create an API token for yourself',
      description:
        'The token may do what you may do at the time of each request, within these limits. Its text is returned once.',
      body: TokenRequest,
      example: {
        name: 'nightly export',
        permissions: ['inventory:read'],
        readOnly: true,
        allowedNetworks: ['10.20.0.0/16'],
      },
      responses: { 201: TokenWithSecret },
      replayResponse: async (caller, id) =>
        newTokenResponse({ token: await apiTokens.find(caller, id), secret: null }),
      handle: async ({ caller, body }) =>
        newTokenResponse(await apiTokens.createOwn(caller, limitsOf(body))),
    }),
    route({
      method: 'GET',
      path: '/api/auth/tokens/{id}',
      operationId: 'getToken',
      tag,
      signedIn: 'it returns a token of the caller; one of others with `user:read`',
      tokenPermissions: ['user:read', 'user:write'],
      summary: 'Get an API token',
      params: OneToken,
      responses: { 200: TokenRecord },
      handle: async ({ caller, params }) => tokenResponse(await apiTokens.find(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/auth/tokens/{id}',
      operationId: 'updateToken',
      tag,
      signedIn: 'it changes a token of the caller; one of others with `user:write`',
      tokenPermissions: ['user:write'],
      summary: 'Update the name of an API token, or narrow what it may do',
      description:
        'A change that would let the token do more is refused with 400 `widened`. The owner never changes.',
      params: OneToken,
      body: TokenChange,
      example: { permissions: ['inventory:read'], expiresAt: '2027-02-01T00:00:00.000Z' },
      responses: { 200: TokenRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        tokenView(await apiTokens.findToChange(caller, params.id)),
      volatile: ['status', 'lastUsedAt', 'lastUsedAddress'],
      handle: async ({ caller, params, body, ifMatch }) =>
        tokenResponse(
          await apiTokens.update(caller, params.id, limitsOf(body), expectedVersion(ifMatch)),
        ),
    }),
    route({
      method: 'DELETE',
      path: '/api/auth/tokens/{id}',
      operationId: 'revokeToken',
      tag,
      signedIn: 'it revokes a token of the caller; one of others with `user:write`',
      tokenPermissions: ['user:write'],
      summary: 'Revoke an API token',
      description:
        'Ends what was asked for with it, too: its queued jobs and its schedules no longer run.',
      params: OneToken,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await apiTokens.revoke(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/auth/tokens/{id}/rotate',
      operationId: 'rotateToken',
      tag,
      signedIn:
        'for the owner of a personal token; for one of a service account with `user:write` and everything that the account may do',
      refusesTokens: MAKES_TOKENS,
      summary: 'Replace the secret of an API token',
      description:
        'Id, limits and expiry stay. The present secret is valid for `overlapSeconds`; one that an earlier rotation replaced ends.',
      params: OneToken,
      body: RotationRequest,
      example: { overlapSeconds: 3_600 },
      responses: { 200: TokenWithSecret },
      headers: ['If-Match'],
      replayResponse: async (caller, id) =>
        rotatedResponse({ token: await apiTokens.find(caller, id), secret: null }),
      handle: async ({ caller, params, body, ifMatch }) =>
        rotatedResponse(
          await apiTokens.rotate(caller, params.id, body.overlapSeconds, expectedVersion(ifMatch)),
        ),
    }),
  ];
};
