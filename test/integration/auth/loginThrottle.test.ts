import { expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { AppError } from '../../../domain/shared/errors.ts';
import { createLoginThrottle } from '../../../services/auth/loginThrottle.ts';
import { withDatabase } from '../../support/database.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

const REFUSAL = { code: 'too_many_requests' };

test('a hundred attempts at an account, whatever their addresses, are the most until it is reset', async () => {
  const throttle = createLoginThrottle({ db });
  const attempt = (account: string, n: number) =>
    throttle.attempt({ account, address: `10.0.${n}.1` });
  for (let n = 1; n <= 100; n++) await attempt('local:ann', n);
  await expect(attempt('local:ann', 101)).rejects.toMatchObject(REFUSAL);
  await attempt('local:bob', 102);
  await throttle.reset('local:ann');
  await attempt('local:ann', 103);
});

test.each([
  ['strauß', 'STRAUẞ'],
  ['Σίσυφος', 'ΣΊΣΥΦΟΣ'],
  ['åsa', 'A\u030aSA'],
])('%s and %s are one account', async (name, other) => {
  const throttle = createLoginThrottle({ db });
  const count = async () =>
    (await db('rate_limits').where('key', 'like', 'account:%').pluck('key')).length;
  const before = await count();
  for (const account of [name, other])
    await throttle.attempt({ account: `local:${account}`, address: '10.3.0.1' });
  expect(await count()).toBe(before + 1);
  const { rows } = await db.raw('SELECT fold_name(?) = fold_name(?) AS same', [name, other]);
  expect(rows).toEqual([{ same: true }]);
});

test('fifty attempts from an address are the most, whatever their accounts', async () => {
  const throttle = createLoginThrottle({ db });
  const attempt = (n: number) => throttle.attempt({ account: `local:${n}`, address: '10.1.0.1' });
  for (let n = 1; n <= 50; n++) await attempt(n);
  await expect(attempt(51)).rejects.toMatchObject(REFUSAL);
});

test('six hundred steps of single sign-on from an address are the most', async () => {
  const throttle = createLoginThrottle({ db });
  await throttle.countStep('10.2.0.1');
  const changed = await db('rate_limits')
    .where('key', 'like', 'step:%')
    .where({ points: 1 })
    .update({ points: 599 });
  expect(changed).toBe(1);
  await throttle.countStep('10.2.0.1');
  await expect(throttle.countStep('10.2.0.1')).rejects.toMatchObject(REFUSAL);
  await throttle.countStep('10.2.0.2');
});

test('a check that a busy server does not make is no attempt', async () => {
  const throttle = createLoginThrottle({ db });
  const busy = new AppError('server_busy', 'The server is busy.');
  const attempt = () => throttle.attempt({ account: 'local:eve', address: '10.3.0.1' });
  for (let n = 1; n <= 11; n++) {
    const { check } = await attempt();
    await expect(check(() => Promise.reject(busy))).rejects.toBe(busy);
  }
  const { check } = await attempt();
  expect(await check(() => Promise.resolve(false))).toBe(false);
});

test('only a limit that is exceeded is a throttled attempt, not a busy database', async () => {
  let throttled = 0;
  const onThrottled = () => Promise.resolve(void (throttled += 1));
  const attempt = (on: Knex) =>
    createLoginThrottle({ db: on }).attempt({
      account: 'local:joe',
      address: '10.4.0.1',
      onThrottled,
    });
  for (let n = 1; n <= 10; n++) await attempt(db);
  const busy = new AppError('server_busy', 'The server is busy.');
  const client = { acquireConnection: () => Promise.reject(busy) };
  await expect(attempt({ client } as unknown as Knex)).rejects.toBe(busy);
  expect(throttled).toBe(0);
  await expect(attempt(db)).rejects.toMatchObject(REFUSAL);
  expect(throttled).toBe(1);
});
