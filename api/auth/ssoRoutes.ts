import { createReadStream } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { Type, type Static } from 'typebox';
import { invalidField, LoginFailure } from '../../domain/shared/errors.ts';
import {
  LOGIN_LIFETIME_SECONDS,
  OIDC_CALLBACK,
  SAML_CALLBACK,
  type Sso,
  type SsoResult,
  type SsoRedirect,
} from '../../services/auth/sso.ts';
import { ok, pageResponse, seeOther, streamResponse } from '../http/response.ts';
import { readCookie, setCookie } from '../http/cookies.ts';
import { htmlPage } from '../http/page.ts';
import { route, type Route } from '../http/route.ts';
import { LOGIN, LOOKUP, PROVIDER_LOGIN, SAML_RESPONSE, STATIC } from '../http/strangerLimits.ts';
import { closed, ProviderId } from '../http/schemas.ts';
import { REQUEST_ID } from '../middleware/requestContext.ts';
import { refreshCookie, requestSource, type SignInRequest } from './routes.ts';

const tag = 'Authentication';

/** Page that shows who is signed in, or why nobody is, for installations without a user interface. */
const SIGNED_IN = '/api/auth/signed-in';

const LOGIN_COOKIE = 'holdfast_login';

const SsoStartRequest = Type.Object(
  {
    providerId: Type.Optional(ProviderId),
    returnTo: Type.String({
      default: SIGNED_IN,
      maxLength: 2_048,
      description: 'Path of this origin to redirect to after the login.',
    }),
    failureTo: Type.String({
      default: SIGNED_IN,
      maxLength: 2_048,
      description:
        'Path of this origin to redirect to if the login fails, with the code of the problem as `error` and its `requestId` in the query.',
    }),
  },
  { title: 'SsoStartRequest', ...closed },
);
const SsoStartResponse = Type.Object(
  { redirectUrl: Type.String({ description: 'URL of the provider to redirect the browser to.' }) },
  { title: 'SsoStartResponse', ...closed },
);
export type SsoStartResponse = Static<typeof SsoStartResponse>;

/** Providers may add further parameters. */
const OidcCallbackQuery = Type.Object(
  {
    state: Type.Optional(Type.String({ maxLength: 512 })),
    code: Type.Optional(Type.String({ maxLength: 8_192 })),
  },
  { additionalProperties: Type.String({ maxLength: 8_192 }) },
);
const SamlCallbackForm = Type.Object(
  // A response with 1,000 groups has about 100 KiB. Larger ones are rejected, since checking
  // signatures is expensive.
  {
    SAMLResponse: Type.String({ minLength: 1, maxLength: 200_000 }),
    RelayState: Type.String({ minLength: 1, maxLength: 512 }),
  },
  { title: 'SamlCallbackForm', additionalProperties: Type.String({ maxLength: 8_192 }) },
);
const FinishQuery = Type.Object(
  {
    state: Type.String({ maxLength: 512 }),
    ticket: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'From the redirect that answers the response of the provider.',
      }),
    ),
  },
  closed,
);

// oxlint-disable-next-line no-control-regex -- rejects control characters
const FORBIDDEN_IN_PATH = /[\\\u0000-\u001f]/;

/**
 * Normalizes a path of this origin as browsers do: they treat a backslash as a slash, drop tabs and
 * newlines and resolve dots. Normalizing twice must not change it: `/.//evil.example` becomes
 * `//evil.example`, which is another origin. Error: `invalid_request` at `pointer`.
 */
function sameOriginPath(text: string, origin: string, pointer: string): string {
  const normalize = (from: string) => {
    const url = from.startsWith('/') ? URL.parse(from, origin) : null;
    return url?.origin === origin ? url.pathname + url.search + url.hash : undefined;
  };
  const normalized = normalize(text);
  if (
    normalized === undefined ||
    normalize(normalized) !== normalized ||
    FORBIDDEN_IN_PATH.test(text)
  ) {
    throw invalidField('body', pointer, 'origin', 'must be a path of this origin');
  }
  return normalized;
}

/** Where the browser of a failed login continues. A login that is not known has no path of its own. */
const errorsLeadTo = (error: unknown): string =>
  error instanceof LoginFailure ? error.failureTo : SIGNED_IN;

const SignedInQuery = Type.Object(
  {
    error: Type.Optional(
      Type.String({
        pattern: '^[a-z_]{1,64}$',
        'x-rule': 'must be the code of a problem',
        description: 'Why a login failed.',
      }),
    ),
    requestId: Type.Optional(
      Type.String({ pattern: REQUEST_ID.source, 'x-rule': 'must be the id of a request' }),
    ),
  },
  closed,
);

const scriptPath = (name: string) => path.join(import.meta.dirname, 'pages', name);

type StartRequest = { origin: string; body: Static<typeof SsoStartRequest> } & Parameters<
  typeof requestSource
>[0];

/** Routes for single sign-on with OpenID Connect and SAML. */
export function ssoRoutes(sso: Sso): Route[] {
  // SameSite=Lax: the browser sends the cookie when the provider redirects back.
  const redirectResponse = (origin: string, { redirectUrl, browserToken }: SsoRedirect) =>
    ok(
      { redirectUrl },
      {
        'cache-control': 'no-store',
        'set-cookie': setCookie({
          origin,
          name: LOGIN_COOKIE,
          value: browserToken,
          maxAgeSeconds: LOGIN_LIFETIME_SECONDS,
          sameSite: 'lax',
        }),
      },
    );
  const signedInResponse = (origin: string, { tokens, returnTo }: SsoResult) =>
    seeOther(returnTo, {
      'set-cookie': [
        ...refreshCookie(origin, tokens),
        ...setCookie({ origin, name: LOGIN_COOKIE, value: '', maxAgeSeconds: 0, sameSite: 'lax' }),
      ],
    });
  const publicReason = 'signing in needs no identity';

  /** Starts a login in the way of one protocol, and sends the browser to the identity provider. */
  const startWith = (start: Sso['startOidc']) => async (request: StartRequest) => {
    const {
      origin,
      body: { returnTo, failureTo, ...body },
    } = request;
    const input = {
      ...body,
      returnTo: sameOriginPath(returnTo, origin, '/returnTo'),
      failureTo: sameOriginPath(failureTo, origin, '/failureTo'),
      origin,
    };
    return redirectResponse(origin, await start(input, requestSource(request)));
  };

  async function finishOidc(request: SignInRequest & { query: object }, callbackPath: string) {
    const { origin, header } = request;
    const query = new URLSearchParams(Object.entries(request.query as Record<string, string>));
    const token = readCookie(header('cookie'), origin, LOGIN_COOKIE);
    return signedInResponse(
      origin,
      await sso.finishOidc({ query, path: callbackPath }, token, requestSource(request)),
    );
  }

  return [
    route({
      method: 'POST',
      path: '/api/auth/login/oidc/start',
      operationId: 'startOidcLogin',
      tag,
      public: publicReason,
      strangers: PROVIDER_LOGIN,
      summary: 'Start a sign-in with OpenID Connect',
      body: SsoStartRequest,
      example: { returnTo: '/api/auth/signed-in', failureTo: '/api/auth/signed-in' },
      responses: { 200: SsoStartResponse },
      handle: startWith(sso.startOidc),
    }),
    route({
      method: 'GET',
      path: OIDC_CALLBACK,
      operationId: 'completeOidcLogin',
      tag,
      public: publicReason,
      strangers: PROVIDER_LOGIN,
      summary: 'Complete a sign-in with OpenID Connect',
      description: 'The provider redirects the browser here.',
      query: OidcCallbackQuery,
      responses: { 303: null },
      errorsLeadTo,
      handle: (request) => finishOidc(request, OIDC_CALLBACK),
    }),
    route({
      method: 'GET',
      path: `${OIDC_CALLBACK}/{id}`,
      operationId: 'completeOidcLoginOfProvider',
      tag,
      public: publicReason,
      strangers: PROVIDER_LOGIN,
      summary: 'Complete a sign-in with a provider that has its own callback',
      description: 'The provider redirects the browser here.',
      params: Type.Object({ id: ProviderId }, closed),
      query: OidcCallbackQuery,
      responses: { 303: null },
      errorsLeadTo,
      handle: (request) => finishOidc(request, `${OIDC_CALLBACK}/${request.params.id}`),
    }),
    route({
      method: 'POST',
      path: '/api/auth/login/saml/start',
      operationId: 'startSamlLogin',
      tag,
      public: publicReason,
      strangers: LOGIN,
      summary: 'Start a sign-in with SAML',
      body: SsoStartRequest,
      example: { returnTo: '/api/auth/signed-in', failureTo: '/api/auth/signed-in' },
      responses: { 200: SsoStartResponse },
      handle: startWith(sso.startSaml),
    }),
    route({
      method: 'POST',
      path: SAML_CALLBACK,
      operationId: 'receiveSamlResponse',
      tag,
      public: publicReason,
      strangers: SAML_RESPONSE,
      summary: 'Receive a SAML response',
      description:
        'The page of the provider posts its response here. The browser is redirected to complete the login.',
      body: SamlCallbackForm,
      example: { SAMLResponse: 'PHNhbWxwOlJlc3BvbnNlPg==', RelayState: 'hfs_0Xo9' },
      bodyType: 'form',
      responses: { 303: null },
      errorsLeadTo,
      handle: async (request) => {
        const { SAMLResponse: samlResponse, RelayState: relayState } = request.body;
        const ticket = await sso.receiveSaml({ samlResponse, relayState }, requestSource(request));
        // The browser sent no cookies with the provider's form; it does with the redirect.
        const query = new URLSearchParams({ state: relayState, ticket });
        return seeOther(`/api/auth/saml/finish?${query.toString()}`);
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/saml/finish',
      operationId: 'completeSamlLogin',
      tag,
      public: publicReason,
      strangers: LOOKUP,
      summary: 'Complete a sign-in with SAML',
      description:
        'Only the browser that started the login and posted the response can complete it. A refused request ends the login.',
      query: FinishQuery,
      responses: { 303: null },
      errorsLeadTo,
      handle: async (request) => {
        const { origin, header, query } = request;
        const token = readCookie(header('cookie'), origin, LOGIN_COOKIE);
        return signedInResponse(origin, await sso.finishSaml(query, token, requestSource(request)));
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/saml/metadata/{id}',
      operationId: 'getSamlMetadata',
      tag,
      public: 'identity providers read it',
      strangers: LOOKUP,
      summary: 'Get the SAML service provider metadata',
      params: Type.Object({ id: ProviderId }, closed),
      responses: { 200: null },
      produces: ['application/samlmetadata+xml'],
      handle: async ({ params, origin }) =>
        streamResponse(
          'application/samlmetadata+xml',
          Readable.from([await sso.samlMetadata(params.id, origin)]),
        ),
    }),
    route({
      method: 'GET',
      path: SIGNED_IN,
      operationId: 'showSignedIn',
      tag,
      public: 'the page contains no data',
      strangers: STATIC,
      summary: 'Get a page that shows who is signed in, or why a sign-in failed',
      query: SignedInQuery,
      responses: { 200: null },
      produces: ['text/html'],
      handle: () =>
        Promise.resolve(
          pageResponse(
            htmlPage(
              'Signed in',
              '<p id="who">Loading …</p>\n<script type="module" src="/api/auth/signed-in.js"></script>',
            ),
          ),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/auth/signed-in.js',
      operationId: 'getSignedInScript',
      tag,
      public: 'the script contains no data',
      strangers: STATIC,
      summary: 'Get the script of the page that shows who is signed in',
      responses: { 200: null },
      produces: ['text/javascript'],
      handle: () =>
        Promise.resolve(
          streamResponse('text/javascript', createReadStream(scriptPath('signedIn.js'))),
        ),
    }),
  ];
}
