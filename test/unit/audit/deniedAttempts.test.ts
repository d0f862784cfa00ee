import { mock } from 'node:test';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { systemCaller, type Caller } from '../../../domain/shared/caller.ts';
import { createDeniedAttempts } from '../../../services/audit/deniedAttempts.ts';

test('a flood of an actor of one tenant hides no attempt of an actor of that name elsewhere', async () => {
  const recorded = new Map<string, number>();
  const attempts = createDeniedAttempts({
    commit: ({ tenantId }: Caller) => {
      recorded.set(tenantId, (recorded.get(tenantId) ?? 0) + 1);
      return Promise.resolve();
    },
    metrics: { denied: { inc: () => undefined } },
  } as unknown as Parameters<typeof createDeniedAttempts>[0]);
  const alice = (tenantId: string): Caller => ({
    ...systemCaller(tenantId, 'r'),
    kind: 'gateway',
    actorId: 'alice',
  });
  for (let n = 0; n < 130; n++) await attempts.record(alice('red'), 'request.denied', {});
  await attempts.record(alice('blue'), 'request.denied', {});
  // The budget is one of a minute, which may have ended in between.
  expect(recorded.get('red')).toBeLessThanOrEqual(120);
  expect(recorded.get('blue')).toBe(1);
});

describe('at the end of a minute, one entry has the number of attempts that have none', () => {
  const recorded: { tenantId: string; actorId: string; entry: unknown[] }[] = [];
  const summaries = () =>
    recorded.filter(({ entry }) => 'omitted' in (entry[2] as { after: object }).after);
  let attempts: ReturnType<typeof createDeniedAttempts>;
  /** Whether the entry with the number of alice cannot be written. */
  let fails = false;
  beforeEach(() => {
    recorded.length = 0;
    fails = false;
    attempts = createDeniedAttempts({
      commit: async ({ tenantId, actorId }: Caller, useCase: (work: object) => void) => {
        await Promise.resolve();
        useCase({
          audit(...entry: unknown[]) {
            const isSummary = 'omitted' in (entry[2] as { after: object }).after;
            if (fails && isSummary && actorId === 'alice') throw new Error('no database');
            recorded.push({ tenantId, actorId, entry });
          },
        });
      },
      metrics: { denied: { inc: () => undefined } },
      log: { warn: () => undefined },
    } as unknown as Parameters<typeof createDeniedAttempts>[0]);
  });
  /** Runs a test whose time `pass` lets pass. The limit of the test itself is one of real time. */
  const withClock = (run: () => Promise<void>) => async () => {
    const now = Date.UTC(2026, 0, 1, 12, 0, 10);
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now });
    await run().finally(() => mock.timers.reset());
  };
  const deny = async (times: number, caller: Caller, action = 'access.denied') => {
    for (let n = 0; n < times; n++) await attempts.record(caller, action, { n });
  };
  const pass = async (ms: number) => {
    mock.timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const actor = (actorId: string, tenantId = 'red') => ({
    ...systemCaller(tenantId, `of ${actorId}`),
    kind: 'gateway' as const,
    actorId,
  });

  test(
    'of an actor and an action',
    withClock(async () => {
      await deny(70, actor('alice'));
      await deny(3, actor('alice'), 'identity.untrusted');
      await deny(60, actor('bob'));
      expect(summaries()).toEqual([]);
      await pass(60_000);
      const detail = (omitted: number) => ({
        after: { omitted, since: new Date(Date.UTC(2026, 0, 1, 12)) },
        outcome: 'denied',
      });
      const subject = { type: 'request', id: 'of alice' };
      expect(summaries()).toEqual([
        { tenantId: 'red', actorId: 'alice', entry: ['access.denied', subject, detail(10)] },
        { tenantId: 'red', actorId: 'alice', entry: ['identity.untrusted', subject, detail(3)] },
      ]);
      await pass(600_000);
      expect(summaries()).toHaveLength(2);
    }),
  );

  test(
    'again in the next minute, although the first ends between two attempts',
    withClock(async () => {
      await deny(61, actor('alice'));
      mock.timers.setTime(Date.UTC(2026, 0, 1, 12, 1, 0));
      await deny(62, actor('alice'));
      await pass(120_000);
      expect(summaries().map(({ entry }) => entry[2])).toMatchObject([
        { after: { omitted: 1 } },
        { after: { omitted: 2 } },
      ]);
    }),
  );

  test(
    'with the network of callers without a name, and no record if there were several',
    withClock(async () => {
      const stranger = {
        ...systemCaller('red', 'of a stranger'),
        kind: 'anonymous' as const,
        address: '203.0.113.7',
      };
      const attack = (id: string) =>
        attempts.record(stranger, 'login.throttled', {}, { subject: { type: 'user', id } });
      for (let n = 0; n < 62; n++) await attack('usr_1');
      await pass(60_000);
      for (let n = 0; n < 62; n++) await attack(`usr_${n}`);
      await pass(60_000);
      expect(
        summaries().map(({ entry: [, subject, detail] }) => ({ subject, detail })),
      ).toMatchObject([
        { subject: { id: 'usr_1' }, detail: { after: { omitted: 2, network: '203.0.113.7' } } },
        { subject: { type: 'request' }, detail: { after: { omitted: 2 } } },
      ]);
    }),
  );

  test(
    'although another one of them cannot be written',
    withClock(async () => {
      fails = true;
      await deny(61, actor('alice'));
      await deny(61, actor('bob'));
      await pass(60_000);
      expect(summaries().map(({ actorId }) => actorId)).toEqual(['bob']);
    }),
  );
});
