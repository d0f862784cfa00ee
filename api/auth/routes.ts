import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import type { AccessReport } from '../../services/accessReport.ts';
import type { RequestSource, Sessions, SessionTokens } from '../../services/auth/sessions.ts';
import type { SignIn } from '../../services/signIn.ts';
import type { Users } from '../../services/auth/users.ts';
import { noContent, ok, type Answer } from '../kit/answer.ts';
import { readCookie, setCookie } from '../http/cookies.ts';
import { listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import { route, type Route } from '../kit/route.ts';
import { sessionView, userView } from '../access/presenter.ts';
import {
  CurrentSession,
  ProviderId,
  SessionRecord,
  TenantId,
  TokenAnswer,
} from '../access/schemas.ts';
import { Id } from '../http/schemas.ts';
import { Password, Username } from './userRoutes.ts';

const area = 'Authentication';
const closed = { additionalProperties: false };

const REFRESH_COOKIE = 'holdfast_refresh';

const credentials = {
  username: Username,
  password: Type.String({ maxLength: 1_024 }),
  tenantId: Type.Optional(
    TenantId("Where new records of the session stand; the user's tenant unless given."),
  ),
  cookie: Type.Boolean({
    default: false,
    description: 'For browsers: the refresh token goes into a cookie that scripts cannot read.',
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
      Type.String({ maxLength: 512, description: 'Unless it is in the cookie.' }),
    ),
  },
  { title: 'RefreshRequest', ...closed },
);
const LogoutRequest = Type.Object(
  {
    refreshToken: Type.Optional(Type.String({ maxLength: 512 })),
    everywhere: Type.Boolean({ default: false, description: 'Ends all sessions of the user.' }),
  },
  { title: 'LogoutRequest', ...closed },
);
const MoveRequest = Type.Object(
  { tenantId: TenantId('Where new records shall stand.') },
  { title: 'SessionMove', ...closed },
);
const PasswordChange = Type.Object(
  { currentPassword: Type.String({ maxLength: 1_024 }), newPassword: Password },
  { title: 'PasswordChange', ...closed },
);
const OneSession = Type.Object({ id: Id('ses') }, closed);

/** The parts of a request that signing in looks at. */
export type Incoming = { caller: Caller; origin: string; header(name: string): string | undefined };

export const sourceOf = ({ caller, header }: Incoming): RequestSource => ({
  requestId: caller.requestId,
  address: caller.address,
  userAgent: header('user-agent') ?? null,
});

/** The refresh token as a cookie. It outlives no session. */
export const refreshCookie = (
  origin: string,
  { refreshToken, refreshExpiresAt }: SessionTokens,
): string =>
  setCookie({
    origin,
    name: REFRESH_COOKIE,
    value: refreshToken,
    sameSite: 'strict',
    maxAgeSeconds: Math.max(1, Math.floor((refreshExpiresAt.getTime() - Date.now()) / 1_000)),
  });

const noCookie = (origin: string) =>
  setCookie({ origin, name: REFRESH_COOKIE, value: '', sameSite: 'strict', maxAgeSeconds: 0 });

function tokenAnswer(origin: string, tokens: SessionTokens, inCookie: boolean): Answer {
  const { accessToken, refreshToken, expiresInSeconds, user } = tokens;
  const body = {
    accessToken,
    refreshToken: inCookie ? null : refreshToken,
    tokenType: 'Bearer',
    expiresIn: expiresInSeconds,
    user: userView(user),
  };
  return ok(body, {
    'cache-control': 'no-store',
    ...(inCookie && { 'set-cookie': refreshCookie(origin, tokens) }),
  });
}

/** The refresh token in the cookie. Browsers say where a request comes from: a page elsewhere must not use it. */
function cookieToken({ origin, header }: Incoming): string | undefined {
  const token = readCookie(header('cookie'), origin, REFRESH_COOKIE);
  if (token === undefined) return undefined;
  if (header('origin') !== origin) {
    throw invalidField('header', '/Origin', 'origin', `must be ${origin} when the cookie is used`);
  }
  return token;
}

type Deps = { signIn: SignIn; sessions: Sessions; users: Users; accessReport: AccessReport };

/** Signing in with a password, and what a session can do with itself. */
export const authRoutes = ({ signIn, sessions, users, accessReport }: Deps): Route[] => [
  route({
    method: 'POST',
    path: '/api/auth/login/local',
    area,
    public: 'it is how one becomes known',
    summary: 'Sign in with a local account',
    body: LocalLogin,
    answers: { 200: TokenAnswer },
    handle: async (request) =>
      tokenAnswer(
        request.origin,
        await signIn.local(request.body, sourceOf(request)),
        request.body.cookie,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/auth/login/ldap',
    area,
    public: 'it is how one becomes known',
    summary: 'Sign in with a directory',
    body: LdapLogin,
    answers: { 200: TokenAnswer },
    handle: async (request) =>
      tokenAnswer(
        request.origin,
        await signIn.ldap(request.body, sourceOf(request)),
        request.body.cookie,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/auth/refresh',
    area,
    public: 'the refresh token is the proof',
    summary: 'Get new tokens; the refresh token is spent',
    body: RefreshRequest,
    answers: { 200: TokenAnswer },
    handle: async (request) => {
      const given = request.body.refreshToken;
      const token = given ?? cookieToken(request);
      if (token === undefined)
        throw new AppError(
          'session_invalid',
          'There is no refresh token, neither in the body nor in the cookie.',
        );
      return tokenAnswer(
        request.origin,
        await sessions.refresh(token, sourceOf(request)),
        given === undefined,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/auth/logout',
    area,
    public: 'a token of the session is the proof',
    summary: 'End the session',
    body: LogoutRequest,
    answers: { 204: null },
    handle: async (request) => {
      const bearer = /^Bearer (\S{1,512})$/i.exec(request.header('authorization') ?? '')?.[1];
      const tokens = [bearer, request.body.refreshToken, cookieToken(request)].filter(
        (token) => token !== undefined,
      );
      if (tokens.length === 0)
        throw new AppError('session_invalid', 'There is no token of the session to end.');
      await sessions.logout(tokens, sourceOf(request), request.body.everywhere);
      return noContent({ 'set-cookie': noCookie(request.origin) });
    },
  }),
  route({
    method: 'GET',
    path: '/api/auth/session',
    area,
    session: 'it is about the caller',
    summary: 'The current session with its user',
    answers: { 200: CurrentSession },
    handle: async ({ caller }) => {
      const { session, user } = await sessions.current(caller);
      return ok({
        ...sessionView(session, session.id),
        user: userView(user),
        permissions: accessReport.held(caller),
      });
    },
  }),
  route({
    method: 'PUT',
    path: '/api/auth/session',
    area,
    session: 'it is about the caller',
    summary: 'Move the session to another tenant',
    body: MoveRequest,
    answers: { 200: SessionRecord },
    handle: async ({ caller, body }) => {
      await sessions.moveTo(caller, body.tenantId);
      const { session } = await sessions.current(caller);
      return ok(sessionView(session, session.id));
    },
  }),
  route({
    method: 'GET',
    path: '/api/auth/sessions',
    area,
    session: 'it is about the caller',
    summary: "List the caller's sessions, newest first",
    query: Type.Object({ ...pageQuery }, closed),
    answers: { 200: listOf(SessionRecord, 'SessionList') },
    handle: ({ caller, query }) =>
      listAnswer(
        'sessions',
        'ses',
        query,
        (page) => sessions.list(caller, page),
        (session) => sessionView(session, caller.session?.id),
      ),
  }),
  route({
    method: 'DELETE',
    path: '/api/auth/sessions/{id}',
    area,
    session: 'it is about the caller',
    summary: "End one of the caller's sessions",
    params: OneSession,
    answers: { 204: null },
    handle: async ({ caller, params }) => {
      await sessions.endOwn(caller, params.id);
      return noContent();
    },
  }),
  route({
    method: 'POST',
    path: '/api/auth/password',
    area,
    session: 'it is about the caller',
    summary: "Change the caller's password",
    body: PasswordChange,
    answers: { 204: null },
    handle: async ({ caller, body }) => {
      await users.changeOwnPassword(caller, body);
      return noContent();
    },
  }),
];
