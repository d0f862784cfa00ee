import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { PLATFORM } from '../../../domain/access/scope.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
import { systemCaller, type Caller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { recordFactory } from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());
const make = recordFactory(() => root);

/** Callers with the same rights, each with a request of its own. */
const callerOf = (actorId: string): Caller => ({
  ...systemCaller(PLATFORM, `request-${actorId}`),
  actorId,
});

/**
 * Makes calls in one turn of the event loop: the first is made alone, and the others wait for it.
 * Returns the row or the code of the error of each.
 */
const inOneTurn = async (calls: readonly (() => Promise<Row>)[]): Promise<(Row | string)[]> =>
  Promise.all(
    calls.map((call) => call().catch((error: unknown) => (error as { code: string }).code)),
  );

const createPrefix =
  (actor: string, record: object, more: Partial<Caller> = {}) =>
  () =>
    app.deps.inventory.writes.create({ ...callerOf(actor), ...more }, 'prefixes', record);

/** The actors whose records in a VRF were written by each transaction, in the order of records. */
async function transactionsIn(table: 'prefixes' | 'ip_addresses', vrfId: string) {
  const { rows } = await app.deps.db.raw<{ rows: { actors: string[] }[] }>(
    `SELECT array_agg(a.actor_id ORDER BY r.id) AS actors FROM ${table} AS r
       JOIN audit_entries AS a ON a.subject_id = r.id AND a.action LIKE '%.create' AND a.request_id = 'request-' || a.actor_id
       JOIN events AS e ON e.subject_id = r.id AND e.actor_id = a.actor_id
     WHERE r.vrf_id = ? GROUP BY r.xmin::text::bigint ORDER BY r.xmin::text::bigint`,
    [vrfId],
  );
  return rows.map(({ actors }) => actors);
}

test('creates in one space that wait for each other share a transaction, and each is its own', async () => {
  const vrfId = (await make('vrfs', { name: 'combined' })).id;
  await make('prefixes', { cidr: '10.0.0.0/8', vrfId });
  const claims = await Promise.all(
    ['a', 'b', 'c'].map(async (actor) => {
      const claimed = await app.deps.idempotency.claim(
        callerOf(actor),
        'key',
        { current: actor },
        false,
      );
      return claimed.kind === 'work' ? { idempotency: claimed.claim } : {};
    }),
  );
  const results = await inOneTurn([
    createPrefix('a', { cidr: '10.1.0.0/16', vrfId }, claims[0]),
    createPrefix('b', { cidr: '10.2.0.0/16', vrfId }, claims[1]),
    createPrefix('c', { cidr: '10.2.1.0/24', vrfId }, claims[2]),
    createPrefix('d', { cidr: '10.2.0.0/16', vrfId }),
    createPrefix('e', { cidr: '10.3.0.1/16', vrfId }),
    createPrefix('f', { cidr: '10.1.1.0/24', vrfId }),
  ]);
  const [a, b, c, d, e, f] = results as [Row, Row, Row, string, string, Row];
  expect([d, e]).toEqual(['conflict', 'invalid_request']);
  // Each is planned on top of those before it.
  expect([c.parentPrefixId, f.parentPrefixId]).toEqual([b.id, a.id]);
  expect(await transactionsIn('prefixes', vrfId)).toEqual([['a'], ['b', 'c', 'f']]);
  const keys = await app.deps
    .db('idempotency_keys')
    .whereIn('actor_id', ['a', 'b', 'c'])
    .orderBy('actor_id')
    .pluck('subject_id');
  expect(keys).toEqual([a.id, b.id, c.id]);
});

test('a create that changes other records is made alone, so that the change is its own', async () => {
  const vrfId = (await make('vrfs', { name: 'effects' })).id;
  const child = await make('prefixes', { cidr: '10.0.1.0/24', vrfId });
  const rows = await inOneTurn([
    createPrefix('a', { cidr: '10.9.0.0/16', vrfId }),
    createPrefix('b', { cidr: '10.8.0.0/16', vrfId }),
    createPrefix('c', { cidr: '10.0.0.0/16', vrfId }),
    createPrefix('d', { cidr: '10.0.2.0/24', vrfId }),
  ]);
  // The one by c has written the record of d again, as its parent.
  expect(await transactionsIn('prefixes', vrfId)).toEqual([['a'], ['b'], ['d', 'c']]);
  const changes = await app.deps
    .db('audit_entries')
    .whereIn('subject_id', [child.id, (rows[3] as Row).id])
    .where({ action: 'inventory.prefix.update' })
    .select('actor_id', 'request_id');
  const byC = { actor_id: 'c', request_id: 'request-c' };
  expect(changes).toEqual([byC, byC]);
});

test('allocations that wait for each other share a transaction; what is left goes to the first', async () => {
  const vrfId = (await make('vrfs', { name: 'allocations' })).id;
  const allocate =
    (prefixId: string) =>
    (actor: string, record: object = {}) =>
    async () =>
      (
        await app.deps.inventory.addressSpace.allocate(
          callerOf(actor),
          prefixId,
          { kind: 'address', record },
          new AbortController().signal,
        )
      ).row;
  const addressesOf = (rows: readonly (Row | string)[]) =>
    rows.map((row) => (typeof row === 'string' ? row : row.address));
  const pool = await make('prefixes', { cidr: '10.0.0.0/24', vrfId, allocationMode: 'pool' });
  const from = allocate(pool.id);
  // They wait once the first has read the prefix.
  const shared = await Promise.all([from('a')(), from('b')(), from('c')(), from('d')()]);
  expect(addressesOf(shared).sort()).toEqual([
    '10.0.0.1/24',
    '10.0.0.2/24',
    '10.0.0.3/24',
    '10.0.0.4/24',
  ]);
  // One that is invalid takes no address from the others, and leaves none out.
  const mixed = await inOneTurn([
    from('e'),
    from('f'),
    from('g', { status: 'unknown' }),
    from('h'),
    from('i'),
  ]);
  expect(addressesOf(mixed)[2]).toBe('invalid_request');
  expect(addressesOf(mixed).sort().slice(0, 4)).toEqual([
    '10.0.0.5/24',
    '10.0.0.6/24',
    '10.0.0.7/24',
    '10.0.0.8/24',
  ]);
  const small = await make('prefixes', { cidr: '10.1.0.0/30', vrfId, allocationMode: 'pool' });
  const few = await inOneTurn(['a', 'b', 'c', 'd'].map((actor) => allocate(small.id)(actor)));
  expect(addressesOf(few).sort()).toEqual([
    '10.1.0.1/30',
    '10.1.0.2/30',
    'prefix_exhausted',
    'prefix_exhausted',
  ]);
});

test('what PostgreSQL refuses, and what fails to be planned, ends nobody else', async () => {
  const vrfId = (await make('vrfs', { name: 'poisoned' })).id;
  await app.deps.db.raw(
    `CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS
       $$BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'program_limit_exceeded'; END$$;
     CREATE TRIGGER refused BEFORE INSERT ON prefixes
       FOR EACH ROW WHEN (NEW.description = 'refused') EXECUTE FUNCTION refuse_row()`,
  );
  const broken = {
    vrfId,
    get cidr(): string {
      throw new Error('broken');
    },
  };
  const refused = { cidr: '10.9.0.0/16', vrfId, description: 'refused' };
  for (const [n, [record, code]] of [[refused, '54000'] as const, [broken] as const].entries()) {
    const cidrs = [1, 2, 3].map((third) => `10.${n}.${third}.0/24`);
    const [a, b, c] = cidrs.map((cidr) => createPrefix('a', { cidr, vrfId }));
    const results = await inOneTurn([a, b, createPrefix('d', record), c].filter((call) => !!call));
    expect(results.map((row) => (typeof row === 'object' ? row.cidr : row))).toEqual([
      ...[cidrs[0], cidrs[1], code, cidrs[2]],
    ]);
  }
  await app.deps.db.raw('DROP FUNCTION refuse_row CASCADE');
});

test('a group that loses its connection writes nothing; with their keys all are made once', async () => {
  const vrfId = (await make('vrfs', { name: 'lost' })).id;
  await app.deps.db.raw(
    `CREATE FUNCTION lose_connection() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
     CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON prefixes DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (NEW.description = 'lost') EXECUTE FUNCTION lose_connection()`,
  );
  const keyed = await Promise.all(
    ['k', 'l', 'm', 'n'].map(async (actor, n) => {
      const state = await app.deps.idempotency.claim(
        callerOf(actor),
        'key',
        { current: actor },
        false,
      );
      const claim = state.kind === 'work' ? { idempotency: state.claim } : {};
      const description = actor === 'm' ? 'lost' : '';
      return createPrefix(actor, { cidr: `10.${n}.0.0/16`, vrfId, description }, claim);
    }),
  );
  const results = await inOneTurn(keyed);
  expect(results.slice(1)).toEqual(['57P01', '57P01', '57P01']);
  // The pool may have the lost connection until its socket ends.
  const drop = () => app.deps.db.raw('DROP FUNCTION IF EXISTS lose_connection CASCADE');
  await eventually(
    () =>
      drop().then(
        () => true,
        () => false,
      ),
    (isDropped) => isDropped,
  );
  const again = await inOneTurn(keyed.slice(1));
  const ids = [...results.slice(0, 1), ...again].map((row) => (row as Row).id);
  expect(await app.deps.db('prefixes').where({ vrf_id: vrfId }).orderBy('id').pluck('id')).toEqual(
    ids.toSorted(),
  );
  const keys = app.deps.db('idempotency_keys').whereIn('actor_id', ['k', 'l', 'm', 'n']);
  expect(await keys.orderBy('actor_id').pluck('subject_id')).toEqual(ids);
});

test('a quota ends only those beyond it', async () => {
  await make('tenants', { id: 'small', name: 'small' });
  const caller = (actor: string) => ({ ...callerOf(actor), tenantId: 'small' });
  await app.deps.db.raw(
    `INSERT INTO tenant_quotas (tenant_id, limits, created_at, updated_at, version)
       VALUES ('small', '{"inventoryRecords": 4}', now(), now(), 1)`,
  );
  const results = await inOneTurn(
    Array.from(
      { length: 7 },
      (_, i) => () =>
        app.deps.inventory.writes.create(caller(`q${i}`), 'prefixes', { cidr: `10.${i}.0.0/16` }),
    ),
  );
  expect(results.filter((row) => row === 'quota_exceeded').length).toBe(3);
  expect(await app.deps.db('prefixes').where({ tenant_id: 'small' }).pluck('id')).toHaveLength(4);
});
