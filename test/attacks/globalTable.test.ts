import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lockSpaces, spaceName } from '../../db/inventory/locks.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../support/app.ts';
import type { ProblemBody, TestClient } from '../support/client.ts';
import { propertyRuns } from '../support/effort.ts';
import {
  recordFactory,
  type BulkReport,
  type InventoryRecord,
  type RecordPage,
  type Validation,
  type WriteProblem,
} from '../support/inventory.ts';
import { admin } from '../support/users.ts';

/**
 * Tenants red and blue in the global table, which they share with the platform. Nothing of red is
 * seen, changed, counted or blocked by blue.
 */
let app: TestApp;
let root: TestClient;
let red: TestClient;
let blue: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  root = admin(app);
  red = app.client.as({ actor: 'rita', roles: 'operator', tenant: 'red' });
  blue = app.client.as({ actor: 'mallory', roles: 'operator', tenant: 'blue' });
  for (const id of ['red', 'blue']) await make('tenants', { id, name: id });
});
afterAll(() => app.stop());

const make = recordFactory(() => root);
const ofRed = recordFactory(() => red);
const ofBlue = recordFactory(() => blue);
const PREFIXES = '/api/inventory/prefixes';
const validate = (client: TestClient, resource: string, record: object, operation = 'create') =>
  client.post<Validation>('/api/validation/inventory', { resource, operation, record });

/** Two networks of each test's own: 10.<n> with an even number, and the next. */
const network = (() => {
  let count = 0;
  return () => `10.${2 * count++}`;
})();

type PrefixMap = { prefixes: { cidr: string; id: string | null }[] };

/** The networks that the map of a prefix has: of prefixes that the client may read, and of others. */
async function mapOf(client: TestClient, path: string) {
  const { prefixes } = await client.get<PrefixMap>(`${path}/map`).expect(200);
  const cidrs = (isReadable: boolean) =>
    prefixes.filter(({ id }) => (id !== null) === isReadable).map(({ cidr }) => cidr);
  return { readable: cidrs(true), other: cidrs(false) };
}

type Tree = {
  usage: { used: string; children: number; addresses: number };
  children: { cidr: string; id: string | null }[];
  free: string[];
  nextCursor: string | null;
};

describe('a supernet of another tenant', () => {
  test('lists, counts and adopts nothing, and changes no version, parent or history', async () => {
    const net = network();
    const own = await ofRed('prefixes', { cidr: `${net}.0.0/16` });
    await ofRed('prefixes', { cidr: `${net}.4.0/24` });
    await ofRed('ip-addresses', { address: `${net}.0.9/16`, dnsName: 'secret.red' });
    await ofRed('ip-ranges', { startAddress: `${net}.1.0`, endAddress: `${net}.1.9` });
    const asked = await validate(blue, 'prefixes', { cidr: `${net}.0.0/15` }).expect(200);
    const inside = await validate(blue, 'prefixes', { cidr: `${net}.4.0/25` }).expect(200);
    expect([asked.effects.length, asked.validation.warnings, inside.effects.length]).toEqual([
      1,
      [],
      1,
    ]);
    expect(inside.candidateRecord).toMatchObject({ parentPrefixId: null });
    const above = await ofBlue('prefixes', { cidr: `${net}.0.0/15`, allocationMode: 'pool' });
    const tree = await blue.get<Tree>(`${PREFIXES}/${above.id}/tree`).expect(200);
    expect([tree.children, tree.free, tree.usage]).toMatchObject([
      [],
      [`${net}.0.0/15`],
      { used: '0', children: 0, addresses: 0 },
    ]);
    // Allocation does not avoid what it cannot see.
    const allocated = await blue
      .post<InventoryRecord>(`${PREFIXES}/${above.id}/allocate`, { kind: 'address' })
      .expect(201);
    expect(allocated.address).toBe(`${net}.0.1/15`);
    await blue.delete(`/api/inventory/ip-addresses/${allocated.id}`).expect(204);
    expect(await mapOf(blue, `${PREFIXES}/${above.id}`)).toEqual({ readable: [], other: [] });
    for (const filter of [`within=${net}.0.0/15`, `contains=${net}.4.1`, `q=${net}.`]) {
      const { items } = await blue.get<RecordPage>(`${PREFIXES}?${filter}`).expect(200);
      expect(items.map(({ id }) => id)).toEqual([above.id]);
    }
    const exported = await blue.get(`${PREFIXES}/export?format=ndjson&within=${net}.0.0/15`);
    expect(JSON.stringify(exported.body)).not.toContain(own.id);
    expect(await red.get<InventoryRecord>(`${PREFIXES}/${own.id}`).expect(200)).toEqual(own);
    const { items } = await red.get<RecordPage>(`${PREFIXES}/${own.id}/changes`).expect(200);
    expect(items).toHaveLength(1);
    await blue.delete(`${PREFIXES}/${above.id}`).expect(204);
    expect(await red.get<InventoryRecord>(`${PREFIXES}/${own.id}`).expect(200)).toEqual(own);
  });

  test('and networks, ranges and addresses inside block nothing', async () => {
    const net = network();
    const own = await ofRed('prefixes', { cidr: `${net}.5.0/24`, allocationMode: 'pool' });
    for (const cidr of ['5.0/24', '5.0/26', '5.64/26', '5.128/25'])
      await ofBlue('prefixes', { cidr: `${net}.${cidr}`, allocationMode: 'dynamic' });
    await ofBlue('ip-ranges', { startAddress: `${net}.5.1`, endAddress: `${net}.5.250` });
    for (const host of [20, 200]) await ofRed('ip-addresses', { address: `${net}.5.${host}` });
    await ofRed('ip-ranges', { startAddress: `${net}.5.100`, endAddress: `${net}.5.255` });
    const { address } = await red
      .post<InventoryRecord>(`${PREFIXES}/${own.id}/allocate`, { kind: 'address' })
      .expect(201);
    expect(address).toBe(`${net}.5.1/24`);
    const usage = await red.get<object>(`${PREFIXES}/${own.id}/usage`).expect(200);
    expect(usage).toMatchObject({ children: 0, addresses: 3, ranges: 1, used: '158' });
    await red.put(`${PREFIXES}/${own.id}`, { cidr: `${net}.4.0/23` }).expect(200);
    // The same network and address once more is a duplicate of one's own only.
    const { conflicts } = await red
      .post<WriteProblem>('/api/inventory/ip-addresses', { address: `${net}.5.20` })
      .expect(409);
    expect(conflicts).toMatchObject([{ code: 'duplicate', resource: 'ip-addresses' }]);
  });

  test('a prefix of another tenant is no parent, and naming its tenant reports nothing of it', async () => {
    const net = network();
    const own = await ofRed('prefixes', { cidr: `${net}.0.0/16` });
    const named = { cidr: `${net}.1.0/24`, parentPrefixId: own.id };
    expect((await blue.post(PREFIXES, named)).status).toBe(400);
    const { errors } = await root
      .post<ProblemBody>(PREFIXES, { ...named, tenantId: 'blue' })
      .expect(400);
    expect(errors).toMatchObject([{ pointer: '/parentPrefixId', code: 'parent_tenant' }]);
    const foreign = { cidr: `${net}.0.0/16`, tenantId: 'red' };
    expect((await blue.post<ProblemBody>(PREFIXES, foreign).expect(403)).conflicts).toBeUndefined();
    const mutations = [{ resource: 'prefixes', operation: 'create', record: foreign }];
    const { results } = await blue
      .post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations })
      .expect(200);
    expect(results).toMatchObject([
      { errors: [{ code: 'permission_denied' }], conflicts: [], warnings: [] },
    ]);
    // Without a tenant, a prefix gets that of the parent which it names.
    expect((await make('prefixes', named)).tenantId).toBe('red');
  });
});

describe('prefixes of the platform', () => {
  test('are parents of all tenants, and only the platform assigns space in them', async () => {
    const net = network();
    const shared = await make('prefixes', { cidr: `${net}.0.0/16`, allocationMode: 'pool' });
    for (const [resource, record] of [
      ['prefixes', { cidr: `${net}.1.0/24` }],
      ['prefixes', { cidr: `${net}.0.0/16` }],
      ['ip-addresses', { address: `${net}.1.1` }],
      ['ip-ranges', { startAddress: `${net}.1.1`, endAddress: `${net}.1.9` }],
      ['ip-ranges', { startAddress: '10.0.0.0', endAddress: '10.255.255.255' }],
    ] as const) {
      const { detail } = await red
        .post<ProblemBody>(`/api/inventory/${resource}`, record)
        .expect(403);
      expect(detail).toBe('Permission inventory:write is missing at the platform.');
      const { validation } = await validate(red, resource, record).expect(400);
      expect(validation.errors.map(({ code }) => code)).toEqual(['permission_denied']);
    }
    expect((await red.post(`${PREFIXES}/${shared.id}/allocate`, { kind: 'address' })).status).toBe(
      404,
    );
    const assigned = await make('prefixes', { cidr: `${net}.1.0/24`, tenantId: 'red' });
    expect(assigned.parentPrefixId).toBe(shared.id);
    // Inside its own prefix a tenant does as it likes, but does not extend it.
    await ofRed('prefixes', { cidr: `${net}.1.0/26` });
    await ofRed('ip-addresses', { address: `${net}.1.1` });
    const path = `${PREFIXES}/${assigned.id}`;
    await red.put(path, { cidr: `${net}.0.0/23` }).expect(403);
    await red.put(path, { cidr: `${net}.1.0/25` }).expect(200);
    await red.put(path, { cidr: `${net}.1.0/24` }).expect(403);
  });

  test('do not assign space twice; the conflict names both sides for the platform only', async () => {
    const net = network();
    const shared = await make('prefixes', { cidr: `${net}.0.0/16`, allocationMode: 'pool' });
    const path = `${PREFIXES}/${shared.id}`;
    const theirs = await make('prefixes', { cidr: `${net}.0.0/25`, tenantId: 'blue' });
    const { conflicts } = await root
      .post<WriteProblem>(PREFIXES, { cidr: `${net}.0.0/24`, tenantId: 'red' })
      .expect(409);
    expect(conflicts).toMatchObject([{ code: 'already_assigned', id: theirs.id }]);
    const answer = await validate(red, 'prefixes', { cidr: `${net}.0.0/24` });
    expect([answer.status, JSON.stringify(answer.body)]).toEqual([
      400,
      expect.not.stringContaining('blue'),
    ]);
    await make('ip-addresses', { address: `${net}.0.128`, tenantId: 'blue' });
    await root
      .post('/api/inventory/ip-addresses', { address: `${net}.0.128`, tenantId: 'red' })
      .expect(409);
    // The free space is what no tenant has.
    const { cidr } = await root
      .post<InventoryRecord>(`${path}/allocate`, {
        kind: 'prefix',
        prefixLength: 25,
        record: { tenantId: 'red' },
      })
      .expect(201);
    expect(cidr).toBe(`${net}.1.0/25`);
    const tree = await root.get<Tree>(`${path}/tree`).expect(200);
    expect(tree.children.map((child) => child.cidr)).toEqual([`${net}.0.0/25`, `${net}.1.0/25`]);
    expect(tree.usage).toMatchObject({ used: '257', children: 2, addresses: 1 });
    expect(await mapOf(root, path)).toEqual({
      readable: [`${net}.0.0/25`, `${net}.1.0/25`],
      other: [],
    });
    // What a tenant returns is assigned again.
    await blue.delete(`${PREFIXES}/${theirs.id}`).expect(204);
    const again = await root
      .post<InventoryRecord>(`${path}/allocate`, { kind: 'prefix', prefixLength: 25 })
      .expect(201);
    expect(again.cidr).toBe(`${net}.0.0/25`);
  });

  test('count in the network around them when they start with it', async () => {
    const net = network();
    const own = await ofRed('prefixes', { cidr: `${net}.0.0/16` });
    for (const at of [1, 3]) await ofRed('prefixes', { cidr: `${net}.${at}.0/24` });
    for (const at of [0, 2]) {
      await make('prefixes', { cidr: `${net}.${at}.0/24` });
      await make('ip-addresses', { address: `${net}.${at}.9`, tenantId: 'red' });
    }
    // What the platform has assigned stays in its prefix, whatever becomes of the one around it.
    const elsewhere = network();
    for (const [change, operation] of [
      [{}, 'delete'],
      [{ cidr: `${net}.128.0/17` }, 'update'],
      [{ cidr: `${elsewhere}.0.0/16` }, 'update'],
      [{ status: 'container' }, 'update'],
    ] as const) {
      const record = { id: own.id, ...change };
      const { validation } = await validate(red, 'prefixes', record, operation).expect(200);
      expect([record, validation.conflicts, validation.warnings]).toEqual([record, [], []]);
    }
    const path = `${PREFIXES}/${own.id}`;
    const free = ['4.0/22', '8.0/21', '16.0/20', '32.0/19', '64.0/18', '128.0/17'];
    const tree = await red.get<Tree>(`${path}/tree`).expect(200);
    expect(tree.free).toEqual(free.map((part) => `${net}.${part}`));
    expect(await mapOf(red, path)).toEqual({
      readable: [`${net}.1.0/24`, `${net}.3.0/24`],
      other: [`${net}.0.0/24`, `${net}.2.0/24`],
    });
    // The second page starts with a prefix of the platform.
    const page = await red.get<Tree>(`${path}/tree?limit=1`).expect(200);
    const next = await red
      .get<Tree>(`${path}/tree?limit=1&cursor=${String(page.nextCursor)}`)
      .expect(200);
    expect([page.free, next.free]).toEqual([[], tree.free]);
    const { cidr } = await red
      .post<InventoryRecord>(`${path}/allocate`, { kind: 'prefix', prefixLength: 24 })
      .expect(201);
    expect(cidr).toBe(`${net}.4.0/24`);
  });

  test('become parents of what tenants have, who do not block them', async () => {
    const net = network();
    const mine = await ofRed('prefixes', { cidr: `${net}.0.0/15` });
    const inner = await ofRed('prefixes', { cidr: `${net}.1.0/24` });
    const theirs = await ofBlue('prefixes', { cidr: `${net}.1.0/25` });
    const question = { cidr: `${net}.0.0/16`, status: 'container' };
    const { validation } = await validate(root, 'prefixes', question).expect(200);
    expect(validation.warnings.map(({ code }) => code)).toEqual([
      'contains_siblings',
      'tenants_overlap',
    ]);
    const shared = await make('prefixes', question);
    const parentOf = async ({ id }: InventoryRecord) =>
      (await root.get<InventoryRecord>(`${PREFIXES}/${id}`).expect(200)).parentPrefixId;
    expect([await parentOf(mine), await parentOf(inner), await parentOf(theirs)]).toEqual([
      null,
      shared.id,
      shared.id,
    ]);
    await root.delete(`${PREFIXES}/${shared.id}`).expect(204);
    expect([await parentOf(inner), await parentOf(theirs)]).toEqual([mine.id, null]);
  });

  test('a tenant that is evicted from a VRF leaves its tree in order', async () => {
    const vrf = await ofRed('vrfs', { name: 'rented', sharedWith: ['blue'] });
    const inVrf = (cidr: string) => ({ cidr, vrfId: vrf.id });
    const top = await ofRed('prefixes', inVrf('10.0.0.0/8'));
    const theirs = await ofBlue('prefixes', inVrf('10.1.0.0/16'));
    await ofBlue('prefixes', inVrf('10.1.2.0/23'));
    const inner = await ofRed('prefixes', inVrf('10.1.2.0/24'));
    await red.put(`/api/inventory/vrfs/${vrf.id}`, { sharedWith: [], evict: true }).expect(200);
    expect((await blue.get(`${PREFIXES}/${theirs.id}`)).status).toBe(404);
    const { parentPrefixId } = await red
      .get<InventoryRecord>(`${PREFIXES}/${inner.id}`)
      .expect(200);
    expect(parentPrefixId).toBe(top.id);
  });

  test('a VRF of a tenant is one space, and one in use does not become shared', async () => {
    const vrf = await ofRed('vrfs', { name: 'red' });
    const vrfId = vrf.id;
    await ofRed('prefixes', { cidr: '10.0.0.0/8', vrfId });
    await root.post(PREFIXES, { cidr: '10.0.0.0/8', vrfId, tenantId: 'blue' }).expect(409);
    await root.put(`/api/inventory/vrfs/${vrfId}`, { tenantId: 'platform' }).expect(409);
    const ofPlatform = (await make('vrfs', { name: 'shared' })).id;
    for (const tenantId of ['platform', 'red', 'blue'])
      await make('prefixes', { cidr: `10.${tenantId.length}.0.0/16`, vrfId: ofPlatform, tenantId });
  });
});

test('tenants do not wait for each other in a shared table', async () => {
  const net = network();
  const first = await app.deps.db.transaction();
  try {
    // What a write of blue holds, as long as its transaction lasts.
    await lockSpaces(first, { spaces: new Set([spaceName('global', 'blue')]), forPlatform: false });
    await ofRed('prefixes', { cidr: `${net}.0.0/16`, allocationMode: 'pool' });
  } finally {
    await first.rollback();
  }
});

/** One step of a history: who does what where. Numbers choose among what is there. */
const step = fc.record({
  who: fc.constantFrom('red', 'red', 'red', 'platform', 'forRed', 'blue', 'blue', 'forBlue'),
  what: fc.constantFrom(
    ...(['prefix', 'prefix', 'prefix', 'address', 'address', 'range'] as const),
    ...(['move', 'drop', 'allocate', 'validate'] as const),
  ),
  shorter: fc.integer({ min: 0, max: 7 }),
  at: fc.nat(127),
  to: fc.nat(127),
  mode: fc.constantFrom('static', 'pool', 'dynamic'),
  pick: fc.nat(100),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A history in a network of its own. `seen` are the answers to red, without what is random. */
class History {
  readonly seen: unknown[] = [];
  private readonly net = network();
  private readonly records: { who: string; resource: string; id: string }[] = [];
  private readonly clients: Record<string, TestClient>;

  constructor() {
    this.clients = { red, blue, platform: root, forRed: root, forBlue: root };
  }

  /** Takes a step. Returns whether it succeeded. */
  async take(asked: Step): Promise<boolean> {
    const { who } = asked;
    const client = assertDefined(this.clients[who], 'client');
    const answer = await this.send(client, asked);
    if (!answer) return false;
    const { status } = answer;
    const body = (answer.body ?? {}) as { id?: unknown; cidr?: unknown };
    const done = status >= 200 && status < 300;
    if (done && typeof body.id === 'string' && asked.what !== 'move')
      this.records.push({
        who,
        resource: body.cidr === undefined ? this.of(asked) : 'prefixes',
        id: body.id,
      });
    if (who === 'red') this.seen.push([asked.what, status, this.normal(body)]);
    return done;
  }

  /** Everything that red reads at the end. */
  async finish(): Promise<unknown[]> {
    const within = `within=${this.net}.0.0/16&limit=200`;
    for (const resource of ['prefixes', 'ip-addresses', 'ip-ranges']) {
      const { items } = await red
        .get<RecordPage>(`/api/inventory/${resource}?${within}`)
        .expect(200);
      this.seen.push(this.normal(items));
      for (const { id } of resource === 'prefixes' ? items : [])
        for (const part of ['tree', 'usage', 'changes'])
          this.seen.push(this.normal((await red.get(`${PREFIXES}/${id}/${part}`)).body));
    }
    return this.seen;
  }

  private of = ({ what }: Step) =>
    ({ address: 'ip-addresses', range: 'ip-ranges' })[what as 'range'] ?? 'prefixes';

  private fields({ what, who, ...asked }: Step) {
    const host = (at: number) => `${this.net}.0.${at}`;
    const size = 2 ** asked.shorter;
    const [low = 0, high = 0] = [asked.at, asked.to].sort((a, b) => a - b);
    const tenant =
      who === 'forRed' ? { tenantId: 'red' } : who === 'forBlue' ? { tenantId: 'blue' } : {};
    if (what === 'address') return { address: host(asked.at), ...tenant };
    if (what === 'range') return { startAddress: host(low), endAddress: host(high), ...tenant };
    const cidr = `${host(Math.floor(asked.at / size) * size)}/${32 - asked.shorter}`;
    return { cidr, allocationMode: asked.mode, ...tenant };
  }

  private async send(client: TestClient, asked: Step) {
    const { what, who } = asked;
    const owned = this.records.filter(
      (record) => record.who.replace('for', '').toLowerCase() === who,
    );
    const target = owned[asked.pick % Math.max(1, owned.length)];
    const path = target && `/api/inventory/${target.resource}/${target.id}`;
    const mutation = { resource: 'prefixes', operation: 'create', record: this.fields(asked) };
    if (what === 'validate') return client.post<object>('/api/validation/inventory', mutation);
    if (what === 'prefix' || what === 'address' || what === 'range')
      return client.post<object>(`/api/inventory/${this.of(asked)}`, this.fields(asked));
    if (!path) return undefined;
    if (what === 'move')
      return target.resource === 'prefixes'
        ? client.put<object>(path, this.fields(asked))
        : undefined;
    if (what === 'allocate')
      return target.resource === 'prefixes'
        ? client.post<object>(`${path}/allocate`, {
            kind: 'prefix',
            prefixLength: 32 - (asked.at % 4),
          })
        : undefined;
    return client.delete<object>(path);
  }

  /** A text without times, and with numbers instead of ids and of the network. */
  private normal(value: unknown): string {
    const ids = new Map(
      this.records.filter(({ who }) => !/blue/i.test(who)).map(({ id }, i) => [id, `#${i}`]),
    );
    return JSON.stringify(value ?? null, (key, each: unknown) =>
      ['createdAt', 'updatedAt', 'requestId', 'at', 'search'].includes(key) ? undefined : each,
    )
      .replaceAll(`${this.net}.`, '10.x.')
      .replaceAll(/(?:pfx|ipa|rng)_[0-9a-z]{26}/g, (id) => ids.get(id) ?? 'unknown')
      .replaceAll(/aud_[0-9a-z]{26}/g, 'entry');
  }
}

test('what red sees is the same with and without what blue does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 25, maxLength: 40 }), async (steps) => {
      const isBlue = ({ who }: Step) => /blue/i.test(who);
      const isPlatform = ({ who }: Step) => who !== 'red' && !/blue/i.test(who);
      const [together, alone] = [new History(), new History()];
      for (const asked of steps) {
        const done = await together.take(asked);
        // The platform sees what blue has, so that it may be refused; then it has done nothing.
        if (isBlue(asked) || (isPlatform(asked) && !done)) continue;
        await alone.take(asked);
      }
      const [mixed, pure] = [await together.finish(), await alone.finish()];
      for (const [i, answer] of mixed.entries()) expect([i, answer]).toEqual([i, pure[i]]);
      expect(mixed.length).toBe(pure.length);
    }),
    { numRuns: propertyRuns(2), endOnFailure: true },
  );
}, 600_000);
