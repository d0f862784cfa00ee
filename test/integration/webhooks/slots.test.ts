import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { tryLockUntilCommit } from '../../../db/core/advisoryLocks.ts';
import { claimPendingDeliveries } from '../../../db/webhooks/deliveryQueue.ts';
import { freeAbandonedSlots, takeSlots } from '../../../db/webhooks/deliverySlots.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { publishWithDeliveries } from '../../support/publishEvents.ts';
import { hasShownTimes } from '../../support/shownTimes.ts';

let app: TestApp;
let db: Knex;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  db = app.deps.db;
});
afterAll(() => app.stop());

const LIMITS = {
  maxInFlight: 2,
  maxInFlightFailing: 1,
  maxFailingOfTenant: 50,
  keptForRetries: 0,
  maxOpen: 100,
  maxOpenFailing: 100,
  maxOpenUnreachable: 100,
  maxCounted: 100,
  capacity: 100,
  sharePercent: 50,
  probesNewest: false,
};

let tenants = 0;
let webhookId: string;
let deliveryIds: string[];
let deliveredId: string;
let jobIds: string[];

/** A working webhook with four pending deliveries, and four jobs that can be assigned to them. */
beforeEach(async () => {
  await db('deliveries').update({ status: 'cancelled' });
  const client = app.client.as({ tenant: `slots${tenants++}` });
  const webhook = await client
    .post<{ id: string }>('/api/webhooks', {
      endpointUrl: 'https://example.net/',
      eventTypes: ['job.created'],
    })
    .expect(201);
  const jobs = [];
  for (let n = 0; n < 5; n++)
    jobs.push(
      await client
        .post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} })
        .expect(201),
    );
  await publishWithDeliveries(db);
  webhookId = webhook.id;
  jobIds = jobs.map(({ id }) => id);
  const all = await db('deliveries').where({ webhook_id: webhookId }).orderBy('id').pluck('id');
  deliveryIds = all.slice(0, 4);
  deliveredId = all[4] ?? '';
  await db('deliveries').where({ id: deliveredId }).update({ status: 'succeeded' });
  expect(deliveryIds).toHaveLength(4);
});

const assign = (on: Knex, n: number, inFlight: boolean) =>
  on('deliveries')
    .where({ id: deliveryIds[n] ?? '' })
    .update({ job_id: jobIds[n] ?? '', in_flight: inFlight });
const takeWith = (limits: typeof LIMITS, n: number) =>
  db.transaction(async (trx) => {
    const jobId = jobIds[n] ?? '';
    return (await takeSlots(trx, [jobId], limits)).get(jobId) ?? null;
  });
const take = (n: number) => takeWith(LIMITS, n);
const lockQueue = (trx: Knex) => tryLockUntilCommit(trx, 'deliveryQueue');
const claimWith = async (trx: Knex, limits: typeof LIMITS) =>
  (await claimPendingDeliveries(trx, { ...limits, limit: 10 })).claimed;
const claim = (trx: Knex) => claimWith(trx, LIMITS);
const setFailing = () =>
  db('webhooks').where({ id: webhookId }).update({ failing_since: new Date() });
const setNew = () => db('deliveries').where({ id: deliveredId }).update({ status: 'failed' });

describe('the queue', () => {
  test('claims as many deliveries as there are free slots, oldest first', async () => {
    const { claimed, areLeft } = await db.transaction((trx) =>
      claimPendingDeliveries(trx, { ...LIMITS, limit: 10 }),
    );
    expect(claimed.map(({ id }) => id)).toEqual(deliveryIds.slice(0, 2));
    expect(areLeft).toBe(true);
  });

  test('claims fewer while every attempt fails', async () => {
    await setFailing();
    expect(await db.transaction(claim)).toHaveLength(1);
  });

  test('claims fewer until an attempt succeeds', async () => {
    await setNew();
    expect(await db.transaction(claim)).toHaveLength(1);
  });

  test('claims nothing when no slot is free', async () => {
    await assign(db, 0, true);
    await assign(db, 1, true);
    expect(await db.transaction(claim)).toEqual([]);
  });

  test('is locked for other processes while one claims', async () => {
    await db.transaction(async (trx) => {
      expect(await claim(trx)).toHaveLength(2);
      expect(await db.transaction(lockQueue)).toBe(false);
      expect(
        await db.transaction((other) => claimPendingDeliveries(other, { ...LIMITS, limit: 10 })),
      ).toEqual({ claimed: [], areLeft: true });
    });
    expect(await db.transaction(lockQueue)).toBe(true);
  });
});

describe('a webhook with many deliveries that wait for a retry', () => {
  const few = { ...LIMITS, maxInFlightFailing: 5, maxOpenUnreachable: 2 };
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
  const patch = (columns: object) => db('webhooks').where({ id: webhookId }).update(columns);
  const setUnreachable = (minutes: number) =>
    patch({ failing_since: minutesAgo(minutes), unreachable_since: minutesAgo(minutes) });
  const setProbed = (minutes: number) => patch({ probed_at: minutesAgo(minutes) });
  const probedAt = async () =>
    (await db('webhooks').where({ id: webhookId }).first('probed_at'))?.probed_at as Date | null;
  const setOpen = (...waiting: number[]) => Promise.all(waiting.map((n) => assign(db, n, false)));
  const claimNow = (limits = few) =>
    db.transaction((trx) => claimPendingDeliveries(trx, { ...limits, limit: 10 }));
  const claimedNow = async (limits = few) => (await claimNow(limits)).claimed.map(({ id }) => id);

  test('starts few while its endpoint cannot be reached, however many slots are free', async () => {
    await setUnreachable(60);
    await setOpen(0);
    expect(await claimedNow()).toEqual([deliveryIds[1]]);
    expect(await probedAt()).toBeNull();
    await setOpen(0, 1);
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
    await setOpen(2);
    // None waits for anything but its probe.
    expect(await claimNow()).toEqual({ claimed: [], areLeft: false });
  });

  test('starts few while its endpoint fails, also if they have one attempt each', async () => {
    const setFailed = (n: number, at: Date) =>
      db('deliveries')
        .where({ id: deliveryIds[n] ?? '' })
        .update({ status: 'failed', job_id: jobIds[n] ?? '', updated_at: at });
    await setUnreachable(60);
    // One that has failed before the outage does not count.
    await setFailed(0, minutesAgo(61));
    await setFailed(1, minutesAgo(59));
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
    expect(await probedAt()).toBeNull();
    await setFailed(0, minutesAgo(58));
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
    expect(await probedAt()).not.toBeNull();
    expect(await claimedNow()).toEqual([]);
    // It rejects everything, and may get more of them; and all when it works again.
    await patch({ unreachable_since: null, probed_at: null });
    expect(await claimedNow({ ...few, maxOpenFailing: 2 })).toEqual([deliveryIds[2]]);
    await patch({ failing_since: null, probed_at: null });
    expect(await claimedNow({ ...few, maxOpen: 2 })).toEqual(deliveryIds.slice(2));
  });

  test('starts one more when it was not probed for a tenth of the time, whatever is retried', async () => {
    await setUnreachable(60);
    await setOpen(0, 1);
    await db('deliveries').whereIn('id', deliveryIds).update({ updated_at: new Date() });
    await setProbed(7);
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
    await setProbed(5);
    expect(await claimedNow()).toEqual([]);
  });

  test('starts one after an hour, however long it cannot be reached', async () => {
    await setUnreachable(3 * 24 * 60);
    await setOpen(0, 1);
    await setProbed(70);
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
  });

  test('starts the others, too, if its endpoint only rejects events', async () => {
    await patch({ failing_since: minutesAgo(3 * 24 * 60) });
    await setOpen(0, 1);
    expect(await claimedNow()).toEqual(deliveryIds.slice(2));
  });

  test('starts the others if a process of version 0.2 has noted that it works', async () => {
    await patch({ unreachable_since: minutesAgo(60) });
    await setOpen(0, 1);
    expect(await claimedNow()).toEqual(deliveryIds.slice(2));
    // It has failed again since.
    await patch({ failing_since: minutesAgo(1), probed_at: minutesAgo(1) });
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
  });

  test('is probed with the oldest and the newest: its endpoint may reject only the oldest ones', async () => {
    await setUnreachable(60);
    await setOpen(0, 1);
    expect(await claimedNow({ ...few, probesNewest: true })).toEqual([deliveryIds.at(-1)]);
    await setProbed(7);
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
  });

  test('starts all if its endpoint has accepted one, and fewer while it accepts none', async () => {
    const limited = { ...few, maxOpenFailing: 3 };
    await setOpen(0, 1);
    expect(await claimedNow(limited)).toEqual(deliveryIds.slice(2));
    await patch({ failing_since: minutesAgo(60) });
    expect(await claimedNow(limited)).toEqual([deliveryIds[2]]);
  });

  test('has a limit that a reachable endpoint has, too', async () => {
    const limited = { ...few, maxOpen: 2, maxOpenFailing: 2 };
    await setOpen(0, 1);
    expect(await claimedNow(limited)).toEqual([deliveryIds[2]]);
    expect(await claimedNow(limited)).toEqual([]);
    await setProbed(1);
    expect(await claimedNow(limited)).toEqual([deliveryIds[2]]);
    await patch({ failing_since: minutesAgo(60) });
    await setProbed(5);
    expect(await claimedNow(limited)).toEqual([]);
  });

  test('is not probed while its tenant has no slots for it, and then without waiting', async () => {
    await setUnreachable(60);
    await setOpen(0, 1);
    expect(await claimNow({ ...few, maxFailingOfTenant: 0 })).toEqual({
      claimed: [],
      areLeft: true,
    });
    expect(await probedAt()).toBeNull();
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
  });

  test('is probed later when another transaction has locked it', async () => {
    await setUnreachable(60);
    await setOpen(0, 1);
    await db.transaction(async (trx) => {
      await trx('webhooks').where({ id: webhookId }).forShare();
      expect(await claimNow()).toEqual({ claimed: [], areLeft: true });
    });
    expect(await claimedNow()).toEqual([deliveryIds[2]]);
  });
});

describe('a retry', () => {
  test('takes a free slot, once', async () => {
    await assign(db, 0, true);
    await assign(db, 1, false);
    await assign(db, 2, false);
    expect(await take(1)).toBeNull();
    expect(await take(1)).toBeNull();
    expect(await take(2)).toEqual({ waiting: 3, slots: 2, failing: false });
  });

  test('finds fewer slots while every attempt fails', async () => {
    await assign(db, 0, true);
    await assign(db, 1, false);
    await setFailing();
    expect(await take(1)).toEqual({ waiting: 2, slots: 50, failing: true });
  });

  test('cannot take a slot that the queue is about to assign', async () => {
    await assign(db, 0, true);
    await assign(db, 1, false);
    let retry: ReturnType<typeof take> | undefined;
    await db.transaction(async (trx) => {
      const claimed = await claim(trx);
      expect(claimed.map(({ id }) => id)).toEqual([deliveryIds[2]]);
      retry = take(1);
      await assign(trx, 2, true);
    });
    expect(await retry).toEqual({ waiting: 3, slots: 2, failing: false });
  });

  test('counts no more waiting deliveries than have an influence on its wait', async () => {
    await assign(db, 0, true);
    await assign(db, 1, true);
    for (const n of [2, 3]) await assign(db, n, false);
    const counting = { ...LIMITS, maxCounted: 3 };
    expect(await takeWith(counting, 2)).toEqual({ waiting: 3, slots: 2, failing: false });
    await setFailing();
    expect(await takeWith(counting, 2)).toEqual({ waiting: 3, slots: 50, failing: true });
  });

  test('counts them once for the jobs of a webhook that ask together, and not if they get slots', async () => {
    for (const n of [0, 1, 2, 3]) await assign(db, n, false);
    const counts: string[] = [];
    const note = ({ sql }: { sql: string }) => {
      if (sql.includes('AS waiting')) counts.push(sql);
    };
    db.on('query', note);
    try {
      await db.transaction((trx) => takeSlots(trx, jobIds.slice(0, 2), LIMITS));
      expect(counts).toHaveLength(0);
      await db.transaction((trx) => takeSlots(trx, jobIds.slice(2), LIMITS));
      expect(counts).toHaveLength(1);
    } finally {
      db.off('query', note);
    }
  });

  test('that counts slots keeps the queue from assigning them', async () => {
    await assign(db, 0, true);
    await assign(db, 1, false);
    await db.transaction(async (trx) => {
      expect(await takeSlots(trx, jobIds.slice(1, 2), LIMITS)).toEqual(new Map());
      expect(await hasShownTimes(trx, 'deliveries', 'updated_at')).toBe(true);
      expect(await db.transaction(lockQueue)).toBe(false);
    });
  });

  test('takes no more slots than are left when several ask together', async () => {
    for (const n of [0, 1, 2, 3]) await assign(db, n, false);
    const refused = await db.transaction((trx) => takeSlots(trx, jobIds, LIMITS));
    expect(refused.size).toBe(2);
  });
});

describe('a slot', () => {
  const LONG_AGO = new Date(Date.now() - 360_000);
  const isHeld = async (n: number) =>
    (await db('deliveries').where({ id: deliveryIds[n] }).first('in_flight'))?.in_flight;

  test('that no attempt has used for five minutes is free', async () => {
    for (const n of [0, 1, 2]) await assign(db, n, n !== 2);
    await db('deliveries').whereIn('id', deliveryIds).update({ updated_at: LONG_AGO });
    await db('jobs').whereIn('id', jobIds).update({ updated_at: LONG_AGO });
    await db('delivery_attempts').insert({
      delivery_id: deliveryIds[0],
      number: 1,
      job_id: jobIds[0],
      started_at: LONG_AGO,
    });
    // The next attempt of this one has started.
    await db('jobs').where({ id: jobIds[1] }).update({ updated_at: new Date() });
    expect(await freeAbandonedSlots(db)).toBe(1);
    expect([await isHeld(0), await isHeld(1)]).toEqual([false, true]);
    expect(
      await db('delivery_attempts').where({ delivery_id: deliveryIds[0] }).first(),
    ).toMatchObject({ error: { code: 'interrupted' }, finished_at: expect.any(Date) });
  });

  test('that was taken for an attempt which has not started yet is not', async () => {
    await assign(db, 0, false);
    await db('deliveries').whereIn('id', deliveryIds).update({ updated_at: LONG_AGO });
    await db('jobs').whereIn('id', jobIds).update({ updated_at: LONG_AGO });
    expect(await take(0)).toBeNull();
    expect(await freeAbandonedSlots(db)).toBe(0);
    expect(await isHeld(0)).toBe(true);
  });
});

describe('a tenant', () => {
  const few = { ...LIMITS, maxInFlight: 50, capacity: 4 };
  const claimFew = (trx: Knex) => claimWith(trx, few);

  test('gets slots while it holds fewer than are free, whatever its webhooks allow', async () => {
    expect(await db.transaction(claimFew)).toHaveLength(2);
    await assign(db, 0, true);
    expect(await db.transaction(claimFew)).toHaveLength(1);
    await assign(db, 1, true);
    expect(await db.transaction(claimFew)).toEqual([]);
  });

  test('has its retries wait when it has its share', async () => {
    await assign(db, 0, true);
    await assign(db, 1, false);
    await assign(db, 2, false);
    expect(await takeWith(few, 1)).toBeNull();
    // The slots of the tenant, which all its webhooks share, and not the 50 of the webhook.
    expect(await takeWith(few, 2)).toEqual({ waiting: 3, slots: 2, failing: false });
    await assign(db, 3, false);
    const refused = await db.transaction((trx) => takeSlots(trx, jobIds.slice(2), few));
    const share = { waiting: 4, slots: 2, failing: false };
    expect([...refused.values()]).toEqual([share, share]);
  });

  describe('with webhooks that are not working', () => {
    const trial = { ...LIMITS, maxInFlightFailing: 50, maxFailingOfTenant: 3, keptForRetries: 1 };
    const claimTrials = (trx: Knex) => claimWith(trx, trial);

    test('tries a few deliveries of new ones', async () => {
      await setNew();
      expect(await db.transaction(claimTrials)).toHaveLength(3);
      await assign(db, 0, true);
      expect(await db.transaction(claimTrials)).toHaveLength(2);
      await assign(db, 1, true);
      await assign(db, 2, true);
      expect(await db.transaction(claimTrials)).toEqual([]);
      await assign(db, 3, false);
      expect(await takeWith(trial, 3)).toEqual({ waiting: 4, slots: 3, failing: true });
    });

    test('tries fewer of failing ones, so that retries find slots', async () => {
      await setFailing();
      expect(await db.transaction(claimTrials)).toHaveLength(2);
      await assign(db, 0, true);
      await assign(db, 1, true);
      expect(await db.transaction(claimTrials)).toEqual([]);
      await assign(db, 2, false);
      expect(await takeWith(trial, 2)).toBeNull();
      await assign(db, 3, false);
      expect(await takeWith(trial, 3)).toEqual({ waiting: 4, slots: 3, failing: true });
    });

    test('has the deliveries of working ones sent', async () => {
      await setFailing();
      for (const n of [0, 1, 2, 3]) await assign(db, n, true);
      const client = app.client.as({ tenant: `slots${tenants - 1}` });
      const working = await client
        .post<{ id: string }>('/api/webhooks', {
          endpointUrl: 'https://example.net/',
          eventTypes: ['job.created'],
        })
        .expect(201);
      await db('deliveries')
        .where({ id: deliveredId })
        .update({ webhook_id: working.id, tenant_id: `slots${tenants - 1}` });
      await client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
      await publishWithDeliveries(db);
      const claimed = await db.transaction(claimTrials);
      expect(claimed.map((delivery) => delivery.webhookId)).toEqual([working.id]);
    });
  });

  test('gets less while others hold slots', async () => {
    await assign(db, 0, true);
    const other = await db('deliveries').where({ id: deliveryIds[0] }).first();
    expect(other).toBeDefined();
    await db('deliveries').where({ id: deliveryIds[0] }).update({ tenant_id: 'other' });
    expect(await db.transaction(claimFew)).toHaveLength(2);
    expect(await db.transaction((trx) => claimWith(trx, { ...few, capacity: 3 }))).toHaveLength(1);
  });
});
