import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, utimes } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasHeartbeat, keepHeartbeat } from '../../../runner/heartbeat.ts';

let work: string;
beforeAll(async () => {
  work = await mkdtemp(path.join(os.tmpdir(), 'holdfast-heartbeat-'));
});
afterAll(() => rm(work, { recursive: true, force: true }));

/** Runs the command of the image. Returns its exit code. */
const check = async (env: Record<string, string>): Promise<unknown> => {
  const script = path.resolve('processes/cli/health.ts');
  return promisify(execFile)(process.execPath, [script], { env }).then(
    () => 0,
    (error: unknown) => (error as { code: unknown }).code,
  );
};

describe('the health check of the image', () => {
  test('of a runner succeeds while its heartbeat is renewed', async () => {
    const env = { HOLDFAST_ROLE: 'runner', HOLDFAST_PORT: '1', HOLDFAST_RUNNER_FOLDER: work };
    expect(await check(env)).toBe(1);
    const own = path.join(work, '1-2');
    await mkdir(own);
    const end = await keepHeartbeat(own);
    expect(await check(env)).toBe(0);
    end();
    const minuteAgo = new Date(Date.now() - 60_000);
    await utimes(path.join(own, 'alive'), minuteAgo, minuteAgo);
    expect(await hasHeartbeat(work)).toBe(false);
    expect(await check(env)).toBe(1);
  });

  test('of another role succeeds while /livez is 200', async () => {
    const server = http.createServer(({ url }, response) => {
      response.writeHead(url === '/livez' ? 200 : 404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const env = {
      HOLDFAST_ROLE: 'worker',
      HOLDFAST_PORT: String((server.address() as AddressInfo).port),
    };
    expect(await check(env)).toBe(0);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(await check(env)).toBe(1);
  });
});
