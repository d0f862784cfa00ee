import { createReadStream } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { invalidField } from '../../domain/shared/errors.ts';
import {
  LOGIN_SECONDS,
  OIDC_CALLBACK,
  SAML_CALLBACK,
  type Federation,
  type Finished,
  type Started,
} from '../../services/federation.ts';
import { ok, seeOther, streamed } from '../kit/answer.ts';
import { readCookie, setCookie } from '../http/cookies.ts';
import { page } from '../http/page.ts';
import { route, type Route } from '../kit/route.ts';
import { ProviderId } from '../access/schemas.ts';
import { refreshCookie, sourceOf, type Incoming } from './routes.ts';

const area = 'Authentication';
const closed = { additionalProperties: false };

/** Until there is a console, the page that says who is signed in. */
const SIGNED_IN = '/api/auth/signed-in';

const LOGIN_COOKIE = 'holdfast_login';

const StartRequest = Type.Object(
  {
    providerId: Type.Optional(ProviderId),
    returnTo: Type.String({
      default: SIGNED_IN,
      maxLength: 2_048,
      description: 'A path here, to go back to.',
    }),
  },
  { title: 'LoginStart', ...closed },
);
const StartAnswer = Type.Object(
  { redirectUrl: Type.String({ description: 'Where to send the browser.' }) },
  { title: 'LoginStarted', ...closed },
);

/** Providers add parameters of their own. */
const OidcAnswer = Type.Object(
  {
    state: Type.Optional(Type.String({ maxLength: 512 })),
    code: Type.Optional(Type.String({ maxLength: 8_192 })),
  },
  { additionalProperties: Type.String({ maxLength: 8_192 }) },
);
const SamlAnswer = Type.Object(
  // A response with a thousand groups has about 100 KiB; checking signatures costs more than the size says.
  {
    SAMLResponse: Type.String({ minLength: 1, maxLength: 200_000 }),
    RelayState: Type.String({ minLength: 1, maxLength: 512 }),
  },
  { title: 'SamlAnswer', additionalProperties: Type.String() },
);
const FinishQuery = Type.Object({ state: Type.String({ maxLength: 512 }) }, closed);

/**
 * A path of this origin. Browsers take a backslash for a slash, drop tabs and newlines and resolve dots, so what they
 * would make of it decides, and of what we would send them once more: `/.//evil.example` becomes `//evil.example`.
 */
function samePath(text: string, origin: string): string {
  const path = (from: string) => {
    const url = from.startsWith('/') ? URL.parse(from, origin) : null;
    return url?.origin === origin ? url.pathname + url.search + url.hash : undefined;
  };
  const once = path(text);
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (once === undefined || path(once) !== once || /[\\\u0000-\u001f]/.test(text)) {
    throw invalidField('body', '/returnTo', 'origin', 'must be a path of this origin');
  }
  return once;
}

const script = (name: string) => path.join(import.meta.dirname, '..', 'pages', name);

/** Signing in at an OpenID Connect or SAML provider. */
export function federationRoutes(federation: Federation): Route[] {
  // The cookie is sent when a page of the provider leads back here, and read by nobody but us.
  const begun = (origin: string, { redirectUrl, browserToken }: Started) =>
    ok(
      { redirectUrl },
      {
        'cache-control': 'no-store',
        'set-cookie': setCookie({
          origin,
          name: LOGIN_COOKIE,
          value: browserToken,
          maxAgeSeconds: LOGIN_SECONDS,
          sameSite: 'lax',
        }),
      },
    );
  const finished = (origin: string, { tokens, returnTo }: Finished) =>
    seeOther(returnTo, {
      'set-cookie': [
        refreshCookie(origin, tokens),
        setCookie({ origin, name: LOGIN_COOKIE, value: '', maxAgeSeconds: 0, sameSite: 'lax' }),
      ],
    });
  const why = 'it is how one becomes known';

  async function finishOidc(request: Incoming & { query: object }, cameTo: string) {
    const { origin, header } = request;
    const query = new URLSearchParams(request.query as Record<string, string>);
    const token = readCookie(header('cookie'), origin, LOGIN_COOKIE);
    return finished(
      origin,
      await federation.finishOidc({ query, path: cameTo }, token, sourceOf(request)),
    );
  }

  return [
    route({
      method: 'POST',
      path: '/api/auth/login/oidc/start',
      area,
      public: why,
      summary: 'Begin a sign-in with OpenID Connect',
      body: StartRequest,
      answers: { 200: StartAnswer },
      handle: async (request) => {
        const {
          origin,
          body: { returnTo, ...body },
        } = request;
        return begun(
          origin,
          await federation.startOidc(
            { ...body, returnTo: samePath(returnTo, origin), origin },
            sourceOf(request),
          ),
        );
      },
    }),
    route({
      method: 'GET',
      path: OIDC_CALLBACK,
      area,
      public: why,
      summary: 'Where the OpenID Connect provider sends the browser back to',
      query: OidcAnswer,
      answers: { 303: null },
      page: true,
      handle: (request) => finishOidc(request, OIDC_CALLBACK),
    }),
    route({
      method: 'GET',
      path: `${OIDC_CALLBACK}/{id}`,
      area,
      public: why,
      summary: 'The same for a provider with a callback of its own',
      params: Type.Object({ id: ProviderId }, closed),
      query: OidcAnswer,
      answers: { 303: null },
      page: true,
      handle: (request) => finishOidc(request, `${OIDC_CALLBACK}/${request.params.id}`),
    }),
    route({
      method: 'POST',
      path: '/api/auth/login/saml/start',
      area,
      public: why,
      summary: 'Begin a sign-in with SAML',
      body: StartRequest,
      answers: { 200: StartAnswer },
      handle: async (request) => {
        const {
          origin,
          body: { returnTo, ...body },
        } = request;
        return begun(
          origin,
          await federation.startSaml(
            { ...body, returnTo: samePath(returnTo, origin), origin },
            sourceOf(request),
          ),
        );
      },
    }),
    route({
      method: 'POST',
      path: SAML_CALLBACK,
      area,
      public: why,
      summary: 'Where the SAML provider posts its response to',
      body: SamlAnswer,
      bodyType: 'form',
      answers: { 303: null },
      page: true,
      handle: async (request) => {
        const { SAMLResponse: samlResponse, RelayState: relayState } = request.body;
        await federation.receiveSaml({ samlResponse, relayState }, sourceOf(request));
        // A form from elsewhere brings no cookies; the way on does.
        return seeOther(`/api/auth/saml/finish?state=${encodeURIComponent(relayState)}`);
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/saml/finish',
      area,
      public: why,
      summary: 'Ends a sign-in with SAML in the browser that began it',
      query: FinishQuery,
      answers: { 303: null },
      page: true,
      handle: async (request) => {
        const { origin, header, query } = request;
        const token = readCookie(header('cookie'), origin, LOGIN_COOKIE);
        return finished(origin, await federation.finishSaml(query.state, token, sourceOf(request)));
      },
    }),
    route({
      method: 'GET',
      path: '/api/auth/saml/metadata/{id}',
      area,
      public: 'a provider reads it',
      summary: 'What a SAML provider must be told of this side',
      params: Type.Object({ id: ProviderId }, closed),
      answers: { 200: null },
      produces: 'application/samlmetadata+xml',
      handle: async ({ params, origin }) =>
        streamed(
          'application/samlmetadata+xml',
          Readable.from([await federation.samlMetadata(params.id, origin)]),
        ),
    }),
    route({
      method: 'GET',
      path: SIGNED_IN,
      area,
      public: 'it holds nothing by itself',
      summary: 'A page that says who is signed in',
      answers: { 200: null },
      produces: 'text/html',
      handle: () =>
        Promise.resolve(
          streamed(
            'text/html',
            Readable.from([
              page(
                'Signed in',
                '<p id="who">Looking …</p>\n<script type="module" src="/api/auth/signed-in.js"></script>',
              ),
            ]),
          ),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/auth/signed-in.js',
      area,
      public: 'part of the page',
      summary: 'Part of the page that says who is signed in',
      answers: { 200: null },
      produces: 'text/javascript',
      handle: () =>
        Promise.resolve(streamed('text/javascript', createReadStream(script('signedIn.js')))),
    }),
  ];
}
