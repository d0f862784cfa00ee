import { expect, test } from '@jest/globals';
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
