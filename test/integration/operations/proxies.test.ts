import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { freePort } from '../../../dev/freePort.ts';
import { eventually } from '../../support/eventually.ts';

type Proxy = {
  program: string;
  /** The example without TLS, between these addresses. */
  configure: (example: string, ports: { listen: number; api: number }) => string;
  args: (file: string, folder: string) => string[];
};

const PROXIES: Readonly<Record<string, Proxy>> = {
  'haproxy.cfg': {
    program: '/usr/sbin/haproxy',
    configure: (example, { listen, api }) =>
      example
        .replace(/bind :443 .*/, `bind 127.0.0.1:${listen}`)
        .replace('log stdout format raw local0', '')
        // As few files as a test may open.
        .replace('maxconn 10000', 'maxconn 100')
        .replaceAll(/(server api-\d) .*/g, `$1 127.0.0.1:${api} no-check`),
    args: (file) => ['-f', file, '-db'],
  },
  'nginx.conf': {
    program: '/usr/sbin/nginx',
    configure: (example, { listen, api }) =>
      `events {} http { access_log off; ${example
        .replace('listen 443 ssl http2', `listen 127.0.0.1:${listen}`)
        .replaceAll(/ssl_certificate.*/g, '')
        .replaceAll(/server 10\S+/g, `server 127.0.0.1:${api}`)} }`,
    args: (file, folder) => [
      ...['-c', file, '-p', folder, '-e', 'stderr'],
      ...['-g', `daemon off; master_process off; pid ${folder}/pid;`],
    ],
  },
};

let api: http.Server;
beforeAll(async () => {
  // It answers with the headers that it has got.
  api = http.createServer(({ headers }, response) => response.end(JSON.stringify(headers)));
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  api.closeAllConnections();
  api.close();
});

describe.each(Object.entries(PROXIES))('ops/proxy/%s', (name, { program, configure, args }) => {
  // `.ci/install-peers` installs the proxies.
  const testWithProxy = existsSync(program) ? test : test.skip;
  let folder: string;
  let listen: number;
  let proxy: ChildProcess | undefined;

  beforeAll(async () => {
    if (!existsSync(program)) return;
    folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-proxy-'));
    listen = await freePort(0);
    const example = await readFile(path.resolve('ops/proxy', name), 'utf8');
    const file = path.join(folder, name);
    const ports = { listen, api: (api.address() as AddressInfo).port };
    await writeFile(file, configure(example, ports));
    proxy = spawn(program, args(file, folder), { stdio: ['ignore', 'ignore', 'inherit'] });
  });
  afterAll(async () => {
    proxy?.kill('SIGKILL');
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  const send = async (headers: Record<string, string>): Promise<IncomingHttpHeaders> => {
    const response = await fetch(`http://127.0.0.1:${listen}/api/jobs`, { headers });
    return (await response.json()) as IncomingHttpHeaders;
  };
  const identityOf = (headers: IncomingHttpHeaders) =>
    Object.keys(headers).filter((header) => header.startsWith('x-service-'));

  const identity = {
    'x-service-actor-id': 'mallory',
    'x-service-role-ids': 'viewer',
    'x-service-tenant-id': 'red',
  };

  testWithProxy('removes an identity that a client has chosen', async () => {
    const answer = await eventually(
      () => send(identity).catch(() => undefined),
      (received) => received !== undefined,
    );
    expect(identityOf(answer ?? identity)).toEqual([]);
    expect(identityOf(await send({ ...identity, authorization: '' }))).toEqual([]);
  });

  testWithProxy('passes on which tenant and roles a request with a token names', async () => {
    const answer = await eventually(
      () => send({ ...identity, authorization: 'Bearer hft_x' }).catch(() => undefined),
      (received) => received !== undefined,
    );
    const { 'x-service-actor-id': _, ...rest } = identity;
    expect(answer).toMatchObject({ ...rest, authorization: 'Bearer hft_x' });
    expect(answer).not.toHaveProperty('x-service-actor-id');
  });
});
