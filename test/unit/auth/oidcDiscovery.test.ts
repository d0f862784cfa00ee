import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { createProviderOutbound } from '../../../platform/providerOutbound.ts';
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
