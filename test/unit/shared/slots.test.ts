import { expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { BUILT_IN_ROLES } from '../../../domain/access/roles.ts';
import type { Grant } from '../../../domain/access/scope.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { createSlots, sharesOf, streamSharesOf } from '../../../platform/slots.ts';

const who = (tenantId: string, actorId = 'a', kind: 'gateway' | 'session' = 'gateway') => ({
  kind,
  tenantId,
  actorId,
});
const of = 'tests';
const retryAfterSeconds = 5;
const tooMany = { code: 'too_many_requests', extra: { retryAfterSeconds: 5 } };
const waiting = { total: 3, perTenant: 2, perCaller: 2, maxMs: 60_000 };

test('the shares are a quarter for a tenant and a tenth for a caller', () => {
  expect(sharesOf(200)).toEqual({ total: 200, perTenant: 50, perCaller: 20 });
  expect(sharesOf(2)).toEqual({ total: 2, perTenant: 1, perCaller: 1 });
});

test('a caller, a tenant and all together have a bound each', () => {
  const slots = createSlots({ of, retryAfterSeconds, total: 5, perTenant: 3, perCaller: 2 });
  const first = slots.takeNow(who('acme'));
  slots.takeNow(who('acme'));
  expect(() => slots.takeNow(who('acme'))).toThrow(expect.objectContaining(tooMany));
  slots.takeNow(who('acme', 'b'));
  expect(slots.tryTake(who('acme', 'c'))).toBeUndefined();
  // A name that another tenant's gateway sends is another caller.
  slots.takeNow(who('beta'));
  slots.takeNow(who('beta', 'b'));
  expect(slots.tryTake(who('beta', 'c'))).toBeUndefined();
  first();
  first();
  slots.takeNow(who('gamma'));
  expect(slots.tryTake(who('delta'))).toBeUndefined();
});

test('several slots are taken together: one that is larger than its share, alone', () => {
  const slots = createSlots({ of, retryAfterSeconds, total: 100, perTenant: 20, perCaller: 10 });
  const refused = (take: () => unknown) => expect(take).toThrow(expect.objectContaining(tooMany));
  const large = slots.takeNow(who('acme'), 30);
  refused(() => slots.takeNow(who('acme', 'b')));
  refused(() => slots.requireShare(who('acme')));
  // Who holds nothing can act, on those who hold what the tenant may.
  slots.requireShare(who('acme', 'b'));
  const own = slots.takeAnyway(who('acme', 'b'), 1);
  refused(() => slots.requireShare(who('acme', 'b')));
  own();
  const written = slots.takeAnyway(who('acme'), 60);
  refused(() => slots.requireShare(who('acme', 'c')));
  slots.takeNow(who('beta'), 10);
  refused(() => slots.requireShare(who('beta')));
  expect(slots.held()).toBe(100);
  // What others hold does not keep anybody from writing.
  refused(() => slots.takeNow(who('gamma')));
  slots.requireShare(who('gamma'));
  written();
  large();
  slots.takeNow(who('acme'), 1);
  expect(slots.held()).toBe(11);
});

test('of streams, the last tenth is for tenants that hold none', () => {
  const slots = createSlots({ of, retryAfterSeconds, ...streamSharesOf(20) });
  const take = (tenantId: string, count: number) =>
    Array.from(
      { length: count },
      (_, n) => slots.tryTake(who(tenantId, `a${n}`)) !== undefined,
    ).filter(Boolean).length;
  expect([take('acme', 9), take('platform', 20), take('beta', 2)]).toEqual([5, 13, 1]);
  expect([take('acme', 1), take('platform', 1), take('gamma', 2)]).toEqual([0, 0, 1]);
  expect(take('delta', 1)).toBe(0);
});

test('a user is the same caller in every tenant', () => {
  const slots = createSlots({ of, retryAfterSeconds, total: 9, perTenant: 9, perCaller: 1 });
  slots.takeNow(who('acme', 'usr_1', 'session'));
  expect(slots.tryTake(who('beta', 'usr_1', 'session'))).toBeUndefined();
});

test('the platform has no share, but leaves the tenants what one caller may have', () => {
  const slots = createSlots({ of, retryAfterSeconds, total: 5, perTenant: 1, perCaller: 2 });
  slots.takeNow(who('platform'));
  slots.takeNow(who('platform'));
  expect(slots.tryTake(who('platform'))).toBeUndefined();
  slots.takeNow(who('platform', 'b'));
  expect(slots.tryTake(who('platform', 'c'))).toBeUndefined();
  slots.takeNow(who('acme'));
  slots.takeNow(who('beta'));
  expect(slots.tryTake(who('gamma'))).toBeUndefined();
  const single = createSlots({ of, retryAfterSeconds, total: 1, perTenant: 1, perCaller: 1 });
  single.takeNow(who('platform'));
});

test('of those that receive a file, only some may take long', async () => {
  const slots = createSlots({
    ...{ of, retryAfterSeconds, total: 9, perTenant: 9, perCaller: 9 },
    long: { total: 2, perTenant: 1, perCaller: 1, afterMs: 20 },
  });
  const receive = (tenantId: string) => {
    const source = new PassThrough();
    return {
      source,
      received: slots.receive(who(tenantId), undefined, source, () => text(source)),
    };
  };
  const quick = receive('acme');
  quick.source.end('quick');
  await expect(quick.received).resolves.toBe('quick');
  const [first, second, third] = [receive('acme'), receive('acme'), receive('beta')];
  await expect(second.received).rejects.toMatchObject(tooMany);
  await expect(receive('gamma').received).rejects.toMatchObject(tooMany);
  for (const { source } of [first, third]) source.end('late');
  await expect(Promise.all([first.received, third.received])).resolves.toEqual(['late', 'late']);
  expect(slots.held()).toBe(0);
  const next = receive('acme');
  await sleep(40);
  next.source.end('again');
  await expect(next.received).resolves.toBe('again');
});

test('an account of the platform that holds something in tenants only uses the share of the first', () => {
  const at = (level: 'platform' | 'tenant', targetId: string): Grant => ({
    role: assertDefined(BUILT_IN_ROLES.get('viewer'), 'viewer'),
    level,
    targetId,
  });
  const guest = (...grants: Grant[]) => ({
    ...who('platform', 'usr_1', 'session'),
    rights: { grants },
  });
  const slots = createSlots({ of, retryAfterSeconds, total: 9, perTenant: 1, perCaller: 5 });
  slots.takeNow(guest(at('tenant', 'beta'), at('tenant', 'acme')));
  expect(slots.tryTake(who('acme'))).toBeUndefined();
  expect(slots.tryTake(guest(at('tenant', 'acme')))).toBeUndefined();
  expect(slots.tryTake(guest(at('tenant', 'beta')))).toBeDefined();
  for (const staff of [guest(at('tenant', 'acme'), at('platform', 'platform')), guest()])
    expect(slots.tryTake(staff)).toBeDefined();
});

test('a free slot goes to the tenant with the fewest, then to the longest wait', async () => {
  const slots = createSlots({
    ...{ of, retryAfterSeconds, total: 2, perTenant: 2, perCaller: 2 },
    waiting: { ...waiting, perTenant: 3, perCaller: 3 },
  });
  const held = [slots.takeNow(who('acme')), slots.takeNow(who('acme'))];
  const granted: string[] = [];
  const enter = async (tenantId: string, actorId: string) => {
    const release = await slots.take(who(tenantId, actorId));
    granted.push(`${tenantId}/${actorId}`);
    return release;
  };
  const waiters = [enter('acme', '1'), enter('acme', '2'), enter('beta', '1')];
  await expect(slots.take(who('gamma'))).rejects.toMatchObject(tooMany);
  held[0]?.();
  const beta = await waiters[2];
  expect(granted).toEqual(['beta/1']);
  beta?.();
  await waiters[0];
  expect(granted).toEqual(['beta/1', 'acme/1']);
  held[1]?.();
  await waiters[1];
});

test('waiting is bounded by tenant, ends after its time and when the client leaves', async () => {
  const bounds = { of, retryAfterSeconds, total: 1, perTenant: 1, perCaller: 1 };
  const patient = createSlots({ ...bounds, waiting });
  const release = patient.takeNow(who('acme'));
  const leaving = new AbortController();
  const left = patient.take(who('acme'), leaving.signal);
  const next = patient.take(who('acme', 'b'));
  await expect(patient.take(who('acme', 'c'))).rejects.toMatchObject(tooMany);
  leaving.abort(new Error('the client left'));
  await expect(left).rejects.toThrow('the client left');
  await expect(patient.take(who('beta'), leaving.signal)).rejects.toThrow('the client left');
  release();
  (await next)();
  expect(await patient.run(who('acme'), undefined, () => Promise.resolve(1))).toBe(1);

  const hasty = createSlots({ ...bounds, waiting: { ...waiting, maxMs: 1 } });
  hasty.takeNow(who('acme'));
  await expect(hasty.take(who('beta'))).rejects.toMatchObject(tooMany);
});

test('a slot that becomes free lets in all whom it kept out', async () => {
  const slots = createSlots({
    ...{ of, retryAfterSeconds, total: 3, perTenant: 1, perCaller: 1 },
    waiting: { total: 3, perTenant: 2, perCaller: 2 },
  });
  const release = slots.takeNow(who('acme', 'usr_1', 'session'));
  // One waits for the tenant, the other one for the user.
  const waiters = [slots.take(who('acme', 'b')), slots.take(who('beta', 'usr_1', 'session'))];
  release();
  expect(await Promise.all(waiters)).toHaveLength(2);
});

test('the slot of work that fails is free again', async () => {
  const slots = createSlots({ of, retryAfterSeconds, total: 1, perTenant: 1, perCaller: 1 });
  const failing = slots.run(who('acme'), undefined, async () => {
    await sleep(0);
    throw new Error('failed');
  });
  expect(slots.tryTake(who('beta'))).toBeUndefined();
  await expect(failing).rejects.toThrow('failed');
  expect(slots.tryTake(who('beta'))).toBeDefined();
});
