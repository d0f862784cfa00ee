import { describe, expect, test } from '@jest/globals';
import { AppError } from '../../../domain/shared/errors.ts';
import { createReadBudgets } from '../../../platform/readBudgets.ts';
import type { SlotHolder } from '../../../platform/slots.ts';

const caller = (actorId: string, tenantId = 'red'): SlotHolder => ({
  kind: 'gateway',
  tenantId,
  actorId,
});
const [ada, bob] = [caller('ada'), caller('bob')];
const other = caller('carol', 'blue');

/** Budgets of 100 ms a second for a tenant, so 50 for a caller, and a clock. */
function setUp() {
  let ms = 1_000;
  const budgets = createReadBudgets({ perSecondMs: 100, now: () => ms });
  return {
    ...budgets,
    budgets,
    pass: (seconds: number) => void (ms += seconds * 1_000),
    /** Retry-After in seconds, if a read is refused while others are active. */
    refusal(holder: SlotHolder): number | undefined {
      budgets.note(caller('dan', 'green'));
      budgets.note(holder);
      const refusal = budgets.refusal(holder);
      if (refusal) expect(refusal.code).toBe('too_many_requests');
      return refusal?.extra.retryAfterSeconds;
    },
  };
}

describe('a budget of expensive reads', () => {
  test('of a caller holds ten seconds of its share, and refills steadily', () => {
    const { charge, refusal, pass } = setUp();
    charge(ada, 499);
    expect(refusal(ada)).toBeUndefined();
    charge(ada, 101);
    expect(refusal(ada)).toBe(2);
    pass(1.9);
    expect(refusal(ada)).toBe(1);
    pass(0.2);
    expect(refusal(ada)).toBeUndefined();
    pass(3_600);
    charge(ada, 501);
    expect(refusal(ada)).toBe(1);
  });

  test('of a tenant is shared by its callers; others have their own', () => {
    const { charge, refusal } = setUp();
    charge(ada, 600);
    expect(refusal(bob)).toBeUndefined();
    charge(bob, 500);
    expect(refusal(caller('eve'))).toBe(1);
    expect(refusal(other)).toBeUndefined();
  });

  test('never has a debt of more than ten seconds', () => {
    const { charge, refusal } = setUp();
    charge(ada, 1_000_000);
    expect(refusal(ada)).toBe(10);
    expect(refusal(bob)).toBe(10);
  });

  test('does not limit the platform as a tenant, but each of its callers', () => {
    const { charge, refusal } = setUp();
    const [root, staff] = [caller('root', 'platform'), caller('staff', 'platform')];
    charge(root, 1_200);
    expect(refusal(staff)).toBeUndefined();
    expect(refusal(root)).toBeGreaterThan(0);
  });

  test('of a user is the same in all tenants', () => {
    const { charge, refusal } = setUp();
    const user = (tenantId: string): SlotHolder => ({ ...ada, kind: 'session', tenantId });
    charge(user('red'), 600);
    expect(refusal(user('blue'))).toBeGreaterThan(0);
  });

  test('refuses nobody while nobody else sends requests', () => {
    const { budgets, charge, note, pass, refusal } = setUp();
    charge(ada, 1_000_000);
    note(ada);
    expect(budgets.refusal(ada)).toBeUndefined();
    note(bob);
    note(ada);
    expect(budgets.refusal(ada)).toBeInstanceOf(AppError);
    pass(5);
    note(ada);
    expect(budgets.refusal(ada)).toBeUndefined();
    expect(refusal(ada)).toBe(5);
  });
});
