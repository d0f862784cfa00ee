import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { PLATFORM } from '../../../domain/access/scope.ts';
import type { Mutation } from '../../../domain/inventory/planning.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { createPlanMemory } from '../../../services/inventory/planMemory.ts';
import { createPlanner } from '../../../services/inventory/planner.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { insertLargePrefixes, largePrefixId } from '../../support/inventory.ts';

const SIZE = 65_000;
const MANY = 60;

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  await insertLargePrefixes(app.deps.db, MANY, SIZE);
});
afterAll(() => app.stop());

const caller = systemCaller(PLATFORM, 'plan-memory');
const options = { perMutation: true, now: new Date() };

const updates = (from: number, count: number): Mutation[] =>
  Array.from({ length: count }, (_, n) => ({
    resource: 'prefixes',
    operation: 'update',
    record: { id: largePrefixId(from + n), status: 'reserved' },
  }));

/** Runs plans in a transaction that is rolled back. */
async function within<T>(run: (trx: Knex.Transaction) => Promise<T>): Promise<T> {
  const trx = await app.deps.db.transaction();
  try {
    return await run(trx);
  } finally {
    await trx.rollback();
  }
}

const busy = expect.objectContaining({ code: 'unavailable' });

test('large plans wait for one another, small ones do not, and nothing is kept afterwards', async () => {
  const planMemory = createPlanMemory({ maxBytes: 6 * 1_048_576 });
  const planner = createPlanner({ ...app.deps, planMemory });
  const askIn = async (trx: Knex.Transaction, mutations: Mutation[]) =>
    (await planner.ask(trx, caller, options)).plan(mutations);
  const large = updates(0, 40);

  await within(async (first) => {
    await askIn(first, large);
    expect(planMemory.kept()).toBeGreaterThan(40 * SIZE);
    await expect(within((second) => askIn(second, updates(20, 40)))).rejects.toEqual(busy);
    await expect(
      within((second) => planner.planToWrite(second, caller, updates(20, 40), options)),
    ).rejects.toEqual(busy);
    // What a transaction plans again replaces what it has planned before.
    await askIn(first, large);
    const { planned } = await within((second) => askIn(second, updates(50, 3)));
    expect(planned.map(({ errors }) => errors)).toEqual([[], [], []]);
  });

  expect(planMemory.kept()).toBe(0);
  const { changes } = await within((trx) => planner.planToWrite(trx, caller, large, options));
  expect(changes).toHaveLength(40);
  expect(planMemory.kept()).toBe(0);
});

test('a plan that is alone may keep more than its share', async () => {
  const planMemory = createPlanMemory({ maxBytes: 1_048_576 });
  const planner = createPlanner({ ...app.deps, planMemory });
  const { changes } = await within((trx) =>
    planner.planToWrite(trx, caller, updates(0, MANY), options),
  );
  expect(changes).toHaveLength(MANY);
});
