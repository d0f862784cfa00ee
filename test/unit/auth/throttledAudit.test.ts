import { expect, test } from '@jest/globals';
import { createDeniedAttempts } from '../../../services/audit/deniedAttempts.ts';
import { createLoginSession } from '../../../services/auth/loginSession.ts';

const source = { requestId: 'req_1', address: '203.0.113.7', userAgent: null };
const account = { id: 'usr_1', tenantId: 'red' };

test('whether a throttled attempt is audited does not show that the account exists', async () => {
  let entries = 0;
  const deniedAttempts = createDeniedAttempts({
    commit: () => Promise.resolve(void (entries += 1) as never),
    metrics: { denied: { inc: () => undefined } } as never,
    log: {} as never,
  });
  const { recordThrottled } = createLoginSession({ deniedAttempts } as never);
  // Within one minute: otherwise the budget is a new one.
  const added = async (known: typeof account | undefined, attempts: number) => {
    const before = entries;
    for (let n = 0; n < attempts; n++) await recordThrottled(source, 'local', known);
    return entries - before;
  };
  let minute: number;
  let seen: number[];
  do {
    minute = Math.floor(Date.now() / 60_000);
    seen = [await added(undefined, 100), await added(account, 2), await added(undefined, 2)];
  } while (minute !== Math.floor(Date.now() / 60_000));
  expect(seen.slice(1)).toEqual([0, 0]);
});
