import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'koa';
import { expect, test } from '@jest/globals';
import { createMayReadMetrics } from '../../../api/operations/metricsAccess.ts';
import { AppError } from '../../../domain/shared/errors.ts';

const OUTAGE = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const REFUSED = new AppError('token_invalid', 'The token is revoked.');

type Rights = Awaited<
  ReturnType<Parameters<typeof createMayReadMetrics>[0]['authenticate']>
>['rights'];

/** An access check whose database answers as `answer` says. */
function check(rememberedMs?: number) {
  const state = { answer: undefined as Error | undefined, postgres: 'ready', asked: 0 };
  const mayRead = createMayReadMetrics({
    access: { holds: () => true },
    readiness: {
      report: () => ({
        status: 'ready',
        version: 'test',
        components: { postgres: state.postgres as 'ready', temporal: 'ready' },
      }),
    },
    clientAddress: { addressOf: (ctx) => ctx.req.socket.remoteAddress ?? null },
    authenticate: () => {
      state.asked += 1;
      return state.answer
        ? Promise.reject(state.answer)
        : Promise.resolve({ rights: {} as unknown as Rights });
    },
    ...(rememberedMs !== undefined && { rememberedMs }),
  });
  const read = (token = 'hfv_a', remoteAddress = '10.0.0.1') =>
    mayRead({
      get: () => `Bearer ${token}`,
      req: { socket: { remoteAddress } },
    } as unknown as Context);
  return { state, read };
}

test('a token that was accepted reads the metrics in an outage of PostgreSQL, another one not', async () => {
  const { state, read } = check();
  expect(await read()).toBe(true);
  state.answer = OUTAGE;
  expect(await read()).toBe(true);
  await expect(read('hfv_b')).rejects.toBe(OUTAGE);
  await expect(read('hfv_a', '10.0.0.2')).rejects.toBe(OUTAGE);
  expect(await read('hfx_a')).toBe(false);
  state.answer = new AppError('server_busy', 'The server is busy.');
  expect(await read()).toBe(true);
  state.answer = new AppError('too_many_requests', 'Too many requests with the token.');
  await expect(read()).rejects.toBe(state.answer);
});

test('PostgreSQL is not asked while it is known to be away', async () => {
  const { state, read } = check();
  expect(await read()).toBe(true);
  state.postgres = 'unavailable';
  expect(await read()).toBe(true);
  expect(state.asked).toBe(1);
  expect(await read('hfv_b')).toBe(true);
  expect(state.asked).toBe(2);
});

test('a token that PostgreSQL refuses is forgotten', async () => {
  const { state, read } = check();
  expect(await read()).toBe(true);
  state.answer = REFUSED;
  expect(await read()).toBe(false);
  state.answer = OUTAGE;
  await expect(read()).rejects.toBe(OUTAGE);
});

test('a token is remembered for a time only', async () => {
  const { state, read } = check(20);
  expect(await read()).toBe(true);
  state.answer = OUTAGE;
  await sleep(50);
  await expect(read()).rejects.toBe(OUTAGE);
});
