import { setTimeout as sleep } from 'node:timers/promises';
import { JobFailure, jobType, Type } from 'holdfast/job-type';

const create = (name: string) => ({ resource: 'sites', operation: 'create', record: { name } });

/** Applies changes, some twice, and fails after them in its first attempt. */
export const appliesAndFails = jobType({
  apiVersion: 1,
  name: 'test.applies-and-fails',
  summary: 'Applies changes in two attempts',
  access: 'open',
  payload: Type.Object({ prefix: Type.String() }, { additionalProperties: false }),
  retry: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
  async run({ prefix }, { attempt, inventory, log }) {
    const first = await inventory.apply([create(`${prefix}-1`)]);
    const id = first.changes[0]?.id ?? '';
    const status = (value: string) => [
      { resource: 'sites', operation: 'update', record: { id, status: value } },
    ];
    await inventory.apply(status('planned'));
    await inventory.apply(status('active'));
    // The same changes once more are other changes, also in the second attempt.
    await inventory.apply(status('planned'));
    if (attempt === 1) throw new JobFailure('first_attempt', 'The first attempt fails');
    await inventory.apply([create(`${prefix}-2`)]);
    const { status: now } = await inventory.get('sites', id);
    log('info', 'read', { status: now });
    return { id, status: now };
  },
});

/** Waits until it is cancelled, and says so. */
export const waits = jobType({
  apiVersion: 1,
  name: 'test.waits',
  summary: 'Waits',
  access: 'open',
  payload: Type.Object({ key: Type.String({ 'x-holdfast-secret': true }) }),
  async run({ key }, { signal, log, progress }) {
    progress(1, `waits with ${key}`);
    log('info', `the key is ${key}`, { nested: [{ [key]: key }] });
    await sleep(600_000, undefined, { signal });
    return {};
  },
});

/** Changes the inventory as often as the test lets it. */
export const appliesWhenAsked = jobType({
  apiVersion: 1,
  name: 'test.refused-changes',
  summary: 'Requests changes that are refused',
  payload: Type.Object({ mutations: Type.Array(Type.Unknown()) }),
  retry: { maxAttempts: 1 },
  async run({ mutations }, { inventory }) {
    const plan = await inventory.plan(mutations as never);
    await inventory.apply(mutations as never);
    return { plan };
  },
});
