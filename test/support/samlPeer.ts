import { createServer } from 'node:http';
import samlp from 'samlp';
import { freePort } from '../../dev/freePort.ts';
import { selfSigned } from './certificate.ts';

export const IDP = 'urn:test:idp';
export const GROUPS = 'http://schemas.passportjs.com/groups';

/** A real SAML identity provider on loopback. A test sets the person to sign in, and options. */
export async function startSamlPeer(callbackUrl: string) {
  const port = await freePort(0);
  const [{ key, cert }, untrusted] = [await selfSigned('idp'), await selfSigned('stranger')];
  const peer = {
    user: {
      id: 'ada@example.net',
      emails: [{ value: 'ada@example.net' }],
      displayName: 'Ada L.',
      name: { givenName: 'Ada', familyName: 'L.' },
      groups: ['net-admins', 'everybody'] as unknown,
    },
    /** Options of samlp for the next answer. */
    options: {} as Record<string, unknown>,
  };
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', `http://127.0.0.1:${port}`);
    if (url.pathname === '/metadata') {
      const endpoint = {
        redirectEndpointPath: '/sso',
        postEndpointPath: '/sso',
        logoutEndpointPaths: { redirect: '/out' },
      };
      samlp.metadata({ issuer: IDP, cert, ...endpoint })(
        Object.assign(req, { originalUrl: req.url, protocol: 'http' }),
        Object.assign(res, {
          set: (name: string, value: string) => res.setHeader(name, value),
          send: (body: string) => res.end(body),
        }),
      );
      return;
    }
    const handle = samlp.auth({
      issuer: IDP,
      cert,
      key,
      recipient: callbackUrl,
      destination: callbackUrl,
      getPostURL: (
        _audience: string,
        _dom: unknown,
        _req: unknown,
        done: (error: null, to: string) => void,
      ) => done(null, callbackUrl),
      getUserFromRequest: () => peer.user,
      ...peer.options,
    });
    handle(
      Object.assign(req, { query: Object.fromEntries(url.searchParams) }),
      Object.assign(res, {
        set: (name: string, value: string) => res.setHeader(name, value),
        send: (body: string | number) => res.end(String(body)),
      }),
      (error: Error) => {
        res.statusCode = 500;
        res.end(error.message);
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return Object.assign(peer, {
    cert,
    untrusted,
    entryPoint: `http://127.0.0.1:${port}/sso`,
    metadataUrl: `http://127.0.0.1:${port}/metadata`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
