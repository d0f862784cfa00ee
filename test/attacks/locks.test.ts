import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { lockDefinitions, lockSpaces, spaceName } from '../../db/inventory/locks.ts';
import type { Knex } from '../../db/core/knex.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { createPlanner } from '../../services/inventory/planner.ts';
import { createInventoryWrites } from '../../services/inventory/writes.ts';
import { startApp, type TestApp } from '../support/app.ts';
import type { TestClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { recordFactory, type BulkReport, type InventoryRecord } from '../support/inventory.ts';
import { admin, createUser } from '../support/users.ts';

/**
 * A batch of blue waits in the middle, for a record of blue that the test holds. Nobody else waits for
 * what the batch only names: their writes are answered while it still waits.
 */
let app: TestApp;
let root: TestClient;
let red: TestClient;
let blue: TestClient;
const make = recordFactory(() => root);
const ofRed = recordFactory(() => red);
const ofBlue = recordFactory(() => blue);

let site: InventoryRecord;
let hidden: InventoryRecord;
let vrf: InventoryRecord;
let network: InventoryRecord;
let blueSite: InventoryRecord;
let held: InventoryRecord;
let deviceType: InventoryRecord;

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  red = app.client.as({ actor: 'rita', roles: 'tenant-admin,operator', tenant: 'red' });
  blue = app.client.as({ actor: 'mallory', roles: 'tenant-admin,operator', tenant: 'blue' });
  for (const id of ['red', 'blue']) await make('tenants', { id, name: id });
  const maker = await make('manufacturers', { name: 'm' });
  deviceType = await make('device-types', { manufacturerId: maker.id, model: 't' });
  site = await ofRed('sites', { name: 'shared', sharedWith: ['blue'] });
  hidden = await ofRed('sites', { name: 'hidden' });
  vrf = await ofRed('vrfs', { name: 'red' });
  network = await ofRed('prefixes', { cidr: '10.0.0.0/8', vrfId: vrf.id });
  blueSite = await ofBlue('sites', { name: 'own' });
  held = await ofBlue('ip-addresses', { address: '192.0.2.1/32' });
  for (const siteId of [site.id, blueSite.id]) await createUser(app, { roleId: 'viewer', siteId });
}, 60_000);
afterAll(() => app.stop());

type Mutation = { resource: string; operation: string; record: object };
const update = (resource: string, id: string, record: object = { description: 'x' }): Mutation => ({
  resource,
  operation: 'update',
  record: { id, ...record },
});
const remove = (resource: string, id: string): Mutation => ({
  resource,
  operation: 'delete',
  record: { id },
});
const create = (resource: string, record: object): Mutation => ({
  resource,
  operation: 'create',
  record,
});

const touch = (client: TestClient, resource: string, id: string) =>
  client.put(`/api/inventory/${resource}/${id}`, { description: `at ${Math.random()}` });

/** How many transactions have waited for a lock for so long. */
const waiting = async (since = '0 ms'): Promise<number> => {
  const { rows } = await app.deps.db.raw<{ rows: { count: number }[] }>(
    `SELECT count(*)::integer FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
       AND clock_timestamp() - query_start >= ?::interval`,
    [since],
  );
  return rows[0]?.count ?? 0;
};

/** Runs `others` while `start` waits for the record of blue. Returns the answer of `start`. */
async function whileHeld<T>(start: () => Promise<T>, others: () => Promise<unknown>): Promise<T> {
  const holder = await app.deps.db.transaction();
  let answer: Promise<T> | undefined;
  try {
    await holder.raw('SELECT FROM ip_addresses WHERE id = ? FOR UPDATE', [held.id]);
    answer = start();
    answer.catch(() => undefined);
    await eventually(
      () => waiting(),
      (count) => count === 1,
    );
    await others();
    expect(await waiting()).toBe(1);
  } finally {
    await holder.rollback();
  }
  return answer;
}

/** The outcomes of a batch of blue, without that for the record that the test holds. */
async function outcomesOf(mutations: Mutation[], others: () => Promise<unknown>) {
  const last = update('ip-addresses', held.id, { description: `at ${Math.random()}` });
  const { results } = await whileHeld(
    async () =>
      blue
        .post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations: [...mutations, last] })
        .expect(200),
    others,
  );
  expect(results.at(-1)?.outcome).toBe('updated');
  return results.slice(0, -1).map(({ outcome }) => outcome);
}

describe('a batch that waits', () => {
  test('locks no record that its sender may not write', async () => {
    const named = [
      ...[site, hidden].flatMap(({ id }) => [update('sites', id), remove('sites', id)]),
      update('device-types', deviceType.id),
      remove('device-types', deviceType.id),
      update('tenants', 'red'),
      update('vrfs', vrf.id),
      update('prefixes', network.id),
      create('prefixes', { cidr: '10.1.0.0/16', vrfId: vrf.id }),
      create('prefixes', { cidr: '10.1.0.0/16', tenantId: 'red' }),
    ];
    const outcomes = await outcomesOf(named, async () => {
      for (const { id } of [site, hidden]) await touch(red, 'sites', id).expect(200);
      await touch(root, 'device-types', deviceType.id).expect(200);
      await touch(root, 'tenants', 'red').expect(200);
      await touch(red, 'vrfs', vrf.id).expect(200);
      await touch(red, 'prefixes', network.id).expect(200);
      const own = await ofRed('prefixes', { cidr: '10.2.0.0/16', vrfId: vrf.id });
      await red.delete(`/api/inventory/prefixes/${own.id}`).expect(204);
    });
    expect([...new Set(outcomes)]).toEqual(['invalid']);
  });

  test('nor one of others that it refers to', async () => {
    const device = create('devices', {
      name: 'guest',
      siteId: site.id,
      deviceTypeId: deviceType.id,
    });
    const outcomes = await outcomesOf([device], async () => {
      await touch(red, 'sites', site.id).expect(200);
      await touch(root, 'device-types', deviceType.id).expect(200);
    });
    expect(outcomes).toEqual(['created']);
  });

  test('and is planned again when such a record has changed', async () => {
    const device = create('devices', {
      name: 'late',
      siteId: site.id,
      deviceTypeId: deviceType.id,
    });
    const sharing = (sharedWith: string[]) => () =>
      red
        .put(`/api/inventory/sites/${site.id}`, {
          sharedWith,
          ...(sharedWith.length === 0 && { evict: true }),
        })
        .expect(200);
    expect(await outcomesOf([device], sharing([]))).toEqual(['invalid']);
    await sharing(['blue'])();
  });

  test('does not lock the rights for moves that are refused or move nothing', async () => {
    const { id: userId } = await createUser(app);
    const outcomes = await outcomesOf(
      [
        update('sites', site.id, { tenantId: 'blue' }),
        update('sites', site.id, { evict: true }),
        update('sites', blueSite.id, { tenantId: 'blue' }),
        update('sites', blueSite.id, { tenantId: 'red' }),
      ],
      () =>
        root
          .post('/api/rbac/assignments', { userId, roleId: 'viewer', siteId: hidden.id })
          .expect(201),
    );
    expect(outcomes).toEqual(['invalid', 'invalid', 'unchanged', 'invalid']);
  });

  test('that changes definitions of custom fields locks those of its tenant only', async () => {
    const field = { resource: 'sites', type: 'text' };
    const outcomes = await outcomesOf(
      [
        create('custom-fields', { ...field, name: 'own' }),
        create('custom-fields', { ...field, name: 'theirs', tenantId: 'red' }),
        create('custom-fields', { ...field, name: 'all', tenantId: 'platform' }),
      ],
      async () => {
        await ofRed('custom-fields', { ...field, name: 'colour' });
        await ofRed('sites', { name: 'coloured', customFields: { colour: 'green' } });
      },
    );
    expect(outcomes).toEqual(['created', 'invalid', 'invalid']);
  });
});

describe('a write for the platform that waits for a tenant', () => {
  const inTable = (cidr: string) => ({ cidr, allocationMode: 'pool' });
  const ofTenant = (id: string, forPlatform = false) => ({
    spaces: new Set([spaceName('global', id)]),
    forPlatform,
  });

  /** Runs `others`, who must be answered, while a write for the platform is kept waiting. */
  async function whileKept(
    hold: (holder: Knex) => Promise<unknown>,
    write: () => Promise<unknown>,
    others: () => Promise<unknown>,
  ) {
    const holder = await app.deps.db.transaction();
    let isAnswered = false;
    let answer: Promise<unknown> | undefined;
    try {
      await hold(holder);
      answer = write().finally(() => (isAnswered = true));
      answer.catch(() => undefined);
      await eventually(
        () => waiting(),
        (count) => count === 1,
      );
      await others();
      expect(isAnswered).toBe(false);
    } finally {
      await holder.rollback();
    }
    await answer;
  }

  const bulk = (mutations: Mutation[]) => async () =>
    root.post('/api/inventory/bulk', { mode: 'all', mutations }).expect(200);

  test('in a shared table does not keep the others', async () => {
    await whileKept(
      (holder) => lockSpaces(holder, ofTenant('red')),
      () => make('prefixes', inTable('10.200.0.0/16')),
      () => ofBlue('prefixes', inTable('10.201.0.0/16')),
    );
  });

  test('nor the tenant whose space it has locked already', async () => {
    await whileKept(
      (holder) => lockSpaces(holder, ofTenant('red')),
      () => make('prefixes', { ...inTable('10.202.0.0/16'), tenantId: 'blue' }),
      () => ofBlue('prefixes', inTable('10.203.0.0/16')),
    );
  });

  test('with definitions of custom fields does not keep those who store values', async () => {
    const field = { resource: 'sites', type: 'text', tenantId: 'platform' };
    await whileKept(
      (holder) => lockDefinitions(holder, { shared: new Set(['platform']), exclusive: new Set() }),
      () => make('custom-fields', { ...field, name: 'everywhere' }),
      () => ofBlue('sites', { name: 'beside a definition' }),
    );
  });

  test('for a record of that tenant does not keep others in a shared table', async () => {
    const top = await make('prefixes', inTable('10.204.0.0/16'));
    await whileKept(
      (holder) => holder.raw('SELECT FROM sites WHERE id = ? FOR UPDATE', [hidden.id]),
      bulk([update('prefixes', top.id), update('sites', hidden.id)]),
      () => ofBlue('prefixes', inTable('10.205.0.0/16')),
    );
  });

  test('for a record of that tenant does not keep others at their records', async () => {
    await whileKept(
      (holder) => holder.raw('SELECT FROM sites WHERE id = ? FOR UPDATE', [hidden.id]),
      bulk([
        update('sites', blueSite.id),
        update('ip-addresses', held.id),
        update('sites', hidden.id),
      ]),
      async () => {
        await touch(blue, 'sites', blueSite.id).expect(200);
        await touch(blue, 'ip-addresses', held.id).expect(200);
      },
    );
  });

  test('for its turn does not keep anybody', async () => {
    await whileKept(
      (holder) => lockSpaces(holder, ofTenant('platform', true)).then(() => undefined),
      () => make('prefixes', inTable('10.206.0.0/16')),
      () => ofBlue('sites', { name: 'beside a turn' }),
    );
  });

  test('waits longer in its last attempt, so that it is made where others always queue', async () => {
    const planner = createPlanner(app.deps);
    const writes = createInventoryWrites({ ...app.deps, planner, maxBusyMs: 0 });
    const caller = systemCaller(PLATFORM, 'last-attempt');
    const create = () => writes.create(caller, 'prefixes', inTable('10.207.0.0/16'));
    const holder = await app.deps.db.transaction();
    let answer: Promise<unknown> | undefined;
    try {
      await lockSpaces(holder, ofTenant('red'));
      answer = create();
      answer.catch(() => undefined);
      await eventually(
        () => waiting('200 ms'),
        (count) => count === 1,
      );
    } finally {
      await holder.rollback();
    }
    expect(await answer).toMatchObject({ cidr: '10.207.0.0/16' });
    // The limit is that of one transaction.
    await whileKept(
      (other) => lockSpaces(other, ofTenant('red')),
      () => make('prefixes', inTable('10.208.0.0/16')),
      () => ofBlue('prefixes', inTable('10.209.0.0/16')),
    );
  });

  test('is done when two of them, and tenants, want the same concurrently', async () => {
    const forBoth = (i: number) => {
      const tenants = i % 2 === 0 ? ['red', 'blue'] : ['blue', 'red'];
      return bulk(
        tenants.map((tenantId) =>
          create('prefixes', { ...inTable(`172.${16 + i}.0.0/16`), tenantId }),
        ),
      )();
    };
    const writes = Array.from({ length: 6 }, (_, i) => [
      make('prefixes', inTable(`10.${210 + i}.0.0/16`)),
      ofBlue('prefixes', inTable(`10.${220 + i}.0.0/16`)),
      forBoth(i),
    ]);
    await Promise.all(writes.flat());
  });
});

test('an import that writes all rows or none locks nothing when a row is invalid', async () => {
  const lines = [
    { resource: 'ip-addresses', id: held.id, description: 'imported' },
    { resource: 'ip-addresses', address: 'none' },
  ].map(({ resource, ...record }) => JSON.stringify(record));
  const holder = await app.deps.db.transaction();
  try {
    await holder.raw('SELECT FROM ip_addresses WHERE id = ? FOR UPDATE', [held.id]);
    const { counts } = await blue
      .post<{ counts: Record<string, number> }>(
        '/api/inventory/import?resource=ip-addresses&mode=all',
        lines.join('\n'),
        { 'content-type': 'application/x-ndjson', prefer: 'wait=20' },
      )
      .expect(202);
    expect(counts).toMatchObject({ skipped: 1, invalid: 1 });
  } finally {
    await holder.rollback();
  }
});
