import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import type { AccessReport } from '../../services/access/report.ts';
import type { RequestSource, Sessions, SessionTokens } from '../../services/auth/sessions.ts';
import type { SignIn } from '../../services/auth/signIn.ts';
import type { Users } from '../../services/auth/users.ts';
import { noContent, ok, type HttpResponse } from '../http/response.ts';
import { readKeptCookie, setCookie } from '../http/cookies.ts';
import { idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { route, type Route } from '../http/route.ts';
import { LOGIN, PROVIDER_LOGIN, SESSION } from '../http/strangerLimits.ts';
import { sessionView, userView } from './presenter.ts';
import { CurrentSession, SessionRecord, TokenResponse } from './schemas.ts';
import { closed, Id, ProviderId, TenantId } from '../http/schemas.ts';
import { Password, Username } from './userRoutes.ts';

const tag = 'Authentication';

const REFRESH_COOKIE = 'holdfast_refresh';

const credentials = {
  username: Username,
  password: Type.String({ maxLength: 1_024 }),
  tenantId: Type.Optional(
    TenantId(
      'Tenant that new records of the session belong to. By default the only tenant of the grants, else that of the user.',
    ),
  ),
  cookie: Type.Boolean({
    default: false,
    description:
      'For browsers: sets the refresh token as an HttpOnly cookie instead of returning it.',
  }),
};
const LocalLogin = Type.Object(credentials, { title: 'LocalLogin', ...closed });
const LdapLogin = Type.Object(
  { ...credentials, providerId: Type.Optional(ProviderId) },
  { title: 'LdapLogin', ...closed },
);
const RefreshRequest = Type.Object(
  {
    refreshToken: Type.Optional(
      Type.String({ maxLength: 512, description: 'Required unless the cookie is sent.' }),
    ),
  },
  { title: 'RefreshRequest', ...closed },
);
const LogoutRequest = Type.Object(
  {
    refreshToken: Type.Optional(
      Type.String({ maxLength: 512, description: 'Alternative to the access token.' }),
    ),
    everywhere: Type.Boolean({ default: false, description: 'Ends all sessions of the user.' }),
  },
  { title: 'LogoutRequest', ...closed },
);
const TenantChangeRequest = Type.Object(
  { tenantId: TenantId('Tenant that new records belong to.') },
  { title: 'SessionTenantChange', ...closed },
);
const PasswordChange = Type.Object(
  { currentPassword: Type.String({ maxLength: 1_024 }), newPassword: Password },
  { title: 'PasswordChange', ...closed },
);
export const SESSIONS = defineList({
  name: 'sessions',
  id: 'ses',
  item: SessionRecord,
  title: 'SessionList',
  fields: {
    tenantId: idField(TenantId()),
    address: textField({ nullable: true, facet: true }),
    createdAt: timeField(),
    refreshedAt: timeField({ sort: true }),
  },
});
const OneSession = Type.Object({ id: Id('ses') }, closed);

/** The parts of a request that a login needs. */
export type SignInRequest = {
  caller: Caller;
  origin: string;
  isOwnOrigin(origin: string): boolean;
  header(name: string): string | undefined;
};

/** Where a request comes from, as stored in the session. */
export const requestSource = ({ caller, header }: SignInRequest): RequestSource => ({
  requestId: caller.requestId,
  address: caller.address,
  userAgent: header('user-agent') ?? null,
});

const secondsUntil = (time: Date): number =>
  Math.max(1, Math.floor((time.getTime() - Date.now()) / 1_000));

/** The refresh token as Set-Cookie headers. The cookie expires with the session. */
export const refreshCookie = (
  origin: string,
  { refreshToken, refreshExpiresAt }: SessionTokens,
): string[] =>
  setCookie({
    origin,
    name: REFRESH_COOKIE,
    value: refreshToken,
    sameSite: 'strict',
    maxAgeSeconds: secondsUntil(refreshExpiresAt),
  });

const expiredCookie = (origin: string) =>
  setCookie({ origin, name: REFRESH_COOKIE, value: '', sameSite: 'strict', maxAgeSeconds: 0 });

function tokenResponse(origin: string, tokens: SessionTokens, inCookie: boolean): HttpResponse {
  const { accessToken, refreshToken, expiresInSeconds, user } = tokens;
  const body = {
    accessToken,
    refreshToken: inCookie ? null : refreshToken,
    tokenType: 'Bearer',
    expiresIn: expiresInSeconds,
    refreshExpiresIn: secondsUntil(tokens.refreshExpiresAt),
    user: userView(user),
  };
  return ok(body, {
    'cache-control': 'no-store',
    ...(inCookie && { 'set-cookie': refreshCookie(origin, tokens) }),
  });
}

/**
 * The refresh token in the cookie. Error: `invalid_request` unless the Origin header is our own, so
 * that other sites cannot use it (CSRF).
 */
function cookieToken({ origin, isOwnOrigin, header }: SignInRequest): string | undefined {
  const token = readKeptCookie(header('cookie'), origin, REFRESH_COOKIE);
  if (token === undefined) return undefined;
  if (!isOwnOrigin(header('origin') ?? '')) {
    throw invalidField('header', '/Origin', 'origin', `must be ${origin} when the cookie is used`);
  }
  return token;
}

type Deps = { signIn: SignIn; sessions: Sessions; users: Users; accessReport: AccessReport };

/** Routes for logins with a password, and for sessions. */
export const authRoutes = ({ signIn, sessions, users, accessReport }: Deps): Route[] => [
  route({
    method: 'POST',
    path: '/api/auth/login/local',
    operationId: 'loginLocal',
    tag,
    public: 'signing in needs no identity',
    strangers: LOGIN,
    summary: 'Sign in with a local account',
    body: LocalLogin,
    example: { username: 'carol', password: 'correct horse battery', cookie: false },
    responses: { 200: TokenResponse },
    handle: async (request) =>
      tokenResponse(
        request.origin,
        await signIn.local(request.body, requestSource(request)),
        request.body.cookie,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/auth/login/ldap',
    operationId: 'loginLdap',
    tag,
    public: 'signing in needs no identity',
    strangers: PROVIDER_LOGIN,
    summary: 'Sign in with an LDAP directory',
    body: LdapLogin,
    example: { username: 'ada', password: 'correct horse battery', cookie: false },
    responses: { 200: TokenResponse },
    handle: async (request) =>
      tokenResponse(
        request.origin,
        await signIn.ldap(request.body, requestSource(request)),
        request.body.cookie,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/auth/refresh',
    operationId: 'refreshSession',
    tag,
    public: 'the refresh token identifies the session',
    strangers: SESSION,
    summary: 'Exchange a refresh token for new tokens',
    description:
      'A refresh token can be used once. A second use within `HOLDFAST_REFRESH_LEEWAY_SECONDS` returns one more pair of tokens; a later one ends the session.',
    body: RefreshRequest,
    example: { refreshToken: 'hfr_2Zm0c1Q9lJx3bq7t5vYw8eN4uK6sRdTfGhAiPoLkMnB' },
    responses: { 200: TokenResponse },
    handle: async (request) => {
      const bodyToken = request.body.refreshToken;
      const token = bodyToken ?? cookieToken(request);
      if (token === undefined)
        throw new AppError(
          'session_invalid',
          'The refresh token is missing: neither the body nor a cookie contains it.',
        );
      return tokenResponse(
        request.origin,
        await sessions.refresh(token, requestSource(request)),
        bodyToken === undefined,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/auth/logout',
    operationId: 'endCurrentSession',
    tag,
    public: 'a token of the session identifies it',
    strangers: SESSION,
    summary: 'End the session',
    description: 'Accepts the access token, the refresh token in the body or the cookie.',
    body: LogoutRequest,
    example: { everywhere: false },
    responses: { 204: null },
    handle: async (request) => {
      const bearer = /^Bearer (\S{1,512})$/i.exec(request.header('authorization') ?? '')?.[1];
      const tokens = [bearer, request.body.refreshToken, cookieToken(request)].filter(
        (token) => token !== undefined,
      );
      if (tokens.length === 0)
        throw new AppError('session_invalid', 'The request contains no token of a session.');
      await sessions.logout(tokens, requestSource(request), request.body.everywhere);
      return noContent({ 'set-cookie': expiredCookie(request.origin) });
    },
  }),
  route({
    method: 'GET',
    path: '/api/auth/session',
    operationId: 'getSession',
    tag,
    session: 'it returns the session of the caller',
    summary: 'Get the current session and its user',
    responses: { 200: CurrentSession },
    handle: async ({ caller }) => {
      const { session, user } = await sessions.current(caller);
      return ok({
        ...sessionView(session, session.id),
        user: userView(user),
        permissions: accessReport.heldPermissions(caller),
      });
    },
  }),
  route({
    method: 'PUT',
    path: '/api/auth/session',
    operationId: 'switchSessionTenant',
    tag,
    session: 'it changes the session of the caller',
    summary: 'Update the tenant of the session',
    description: 'New records of the session belong to this tenant. The user needs a grant in it.',
    body: TenantChangeRequest,
    example: { tenantId: 'red' },
    responses: { 200: SessionRecord },
    current: async ({ caller }) => {
      const { session } = await sessions.current(caller);
      return sessionView(session, session.id);
    },
    volatile: ['refreshedAt', 'idleExpiresAt', 'user', 'permissions'],
    // The tenant is required.
    passUnchanged: ['tenantId'],
    handle: async ({ caller, body }) => {
      await sessions.switchTenant(caller, body.tenantId);
      const { session } = await sessions.current(caller);
      return ok(sessionView(session, session.id));
    },
  }),
  route({
    method: 'GET',
    path: '/api/auth/sessions',
    operationId: 'listSessions',
    tag,
    session: 'it returns the sessions of the caller',
    summary: "List the caller's sessions",
    query: SESSIONS.query,
    responses: { 200: SESSIONS.schema },
    handle: ({ caller, query }) =>
      SESSIONS.respond(
        query,
        (request) => sessions.list(caller, request),
        (session) => sessionView(session, caller.session?.id),
      ),
  }),
  route({
    method: 'DELETE',
    path: '/api/auth/sessions',
    operationId: 'endOtherSessions',
    tag,
    session: 'it ends the other sessions of the caller',
    summary: "End the caller's other sessions",
    description: 'The session of the request stays.',
    responses: { 204: null },
    handle: async ({ caller }) => {
      await sessions.endOthers(caller);
      return noContent();
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/auth/sessions/{id}',
    operationId: 'endSession',
    tag,
    session: 'it ends a session of the caller',
    summary: "End one of the caller's sessions",
    params: OneSession,
    responses: { 204: null },
    handle: async ({ caller, params }) => {
      await sessions.endOwn(caller, params.id);
      return noContent();
    },
  }),
  route({
    method: 'POST',
    path: '/api/auth/password',
    operationId: 'changePassword',
    tag,
    session: 'it changes the password of the caller',
    summary: "Update the caller's password",
    description: 'Ends the other sessions of the user. For local accounts only.',
    body: PasswordChange,
    example: { currentPassword: 'one-time password', newPassword: 'correct horse battery' },
    responses: { 204: null },
    handle: async ({ caller, body }) => {
      await users.changeOwnPassword(caller, body);
      return noContent();
    },
  }),
];
