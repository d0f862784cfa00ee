import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import {
  createProviderOutbound,
  type ProviderOutbound,
} from '../../../platform/providerOutbound.ts';
import { createOidc, type OidcConfig } from '../../../services/auth/providers/kinds/oidc.ts';

test('concurrent logins share one request to the provider; a failure is not kept', async () => {
  let requests = 0;
  let status = 503;
  const server = createServer((req, res) => {
    requests += 1;
    const issuer = `http://${req.headers.host}`;
    const document = { issuer, authorization_endpoint: `${issuer}/authorize` };
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const outbound = createProviderOutbound([]);
  const oidc = createOidc(outbound);
  const config = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clientId: 'holdfast',
    scopes: [],
    allowPrivateNetwork: true,
    allowHttp: true,
  } as unknown as OidcConfig;
  const start = () => oidc.start(config, { state: 'state', redirectUri: 'https://sp.example/cb' });
  const startTen = () => Promise.allSettled(Array.from({ length: 10 }, start));

  const failed = await startTen();
  expect(failed.map((each) => each.status)).toEqual(Array(10).fill('rejected'));
  expect(requests).toBe(1);
  status = 200;
  const done = await startTen();
  expect(done.map((each) => each.status)).toEqual(Array(10).fill('fulfilled'));
  await start();
  expect(requests).toBe(2);
  server.closeAllConnections();
  server.close();
  await outbound.close();
});

test('a document of Microsoft for all tenants is refused, that of one tenant is not', async () => {
  const base = 'https://login.microsoftonline.com';
  const issuers: Record<string, string> = {
    common: `${base}/{tenantid}/v2.0`,
    organizations: `${base}/{tenantid}/v2.0`,
    'tenant-1': `${base}/tenant-1/v2.0`,
  };
  const fetch = (url: string) => {
    const tenant = new URL(url).pathname.split('/')[1] ?? '';
    return Promise.resolve(
      Response.json({ issuer: issuers[tenant], authorization_endpoint: `${base}/authorize` }),
    );
  };
  const oidc = createOidc({ httpFor: () => ({ fetch }) } as unknown as ProviderOutbound);
  const start = (tenant: string) =>
    oidc.start({ issuer: `${base}/${tenant}/v2.0`, clientId: 'c', scopes: [] } as never, {
      state: 'state',
      redirectUri: 'https://sp.example/cb',
    });
  await expect(start('common')).rejects.toThrow(/use the issuer of one tenant/);
  await expect(start('organizations')).rejects.toThrow(/use the issuer of one tenant/);
  await expect(start('tenant-1')).resolves.toMatchObject({ pending: { state: 'state' } });
});
