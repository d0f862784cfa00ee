import { afterEach, expect, test } from '@jest/globals';
import type { Notifications } from '../../../db/core/notifications.ts';
import { createSlots } from '../../../platform/slots.ts';
import { retryWrite } from '../../../services/jobs/retryWrite.ts';
import { createReadInstallationState } from '../../../services/operations/installationState.ts';
import { createWaitForEnd } from '../../../services/shared/waitForEnd.ts';
import { eventually } from '../../support/eventually.ts';
import { createFakeState } from '../../support/installationState.ts';

const RealDate = Date;
afterEach(() => void (globalThis.Date = RealDate));

/** Sets the clock of the process back by an hour, as a wrong time server does. */
function setClockBack() {
  const ms = -3_600_000;
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      super(...((args.length === 0 ? [RealDate.now() + ms] : args) as [number]));
    }
    static override now = () => RealDate.now() + ms;
  } as DateConstructor;
}

test('a wait ends in time', async () => {
  const notifications = { on: () => () => undefined } as unknown as Notifications;
  const bounds = { total: 1, perTenant: 1, perCaller: 1 };
  const waits = createSlots({ of: 'waits', retryAfterSeconds: 1, ...bounds });
  const waitForEnd = createWaitForEnd({ notifications, slots: { waits } });
  const caller = { kind: 'system', tenantId: 'acme', actorId: 'ann' } as const;
  const startedAt = performance.now();
  const waiting = waitForEnd(
    caller,
    {
      topic: 'any',
      hasEnded: () => Promise.resolve(false),
      read: () => Promise.resolve('unfinished'),
      isFinished: () => false,
    },
    { waitMs: 100, signal: AbortSignal.timeout(10_000) },
  );
  setClockBack();
  expect(await waiting).toBe('unfinished');
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

test('a write that fails is given up in time', async () => {
  let tries = 0;
  const startedAt = performance.now();
  const write = retryWrite(() => {
    if (++tries === 2) setClockBack();
    return Promise.reject(new Error(tries > 20 ? 'tried for ever' : 'no database'));
  }, 'inline');
  await expect(write).rejects.toThrow('no database');
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

test('the state of the installation gets older', async () => {
  const { db, goAway } = createFakeState({ ageSeconds: 5, state: {} });
  const read = createReadInstallationState({ db, cacheMs: 0 });
  const age = async () => (await read())?.ageSeconds ?? NaN;
  const first = await age();
  expect(Math.floor(first)).toBe(5);
  setClockBack();
  goAway();
  await eventually(age, (seconds) => seconds > first);
  expect(await age()).toBeLessThan(60);
});
