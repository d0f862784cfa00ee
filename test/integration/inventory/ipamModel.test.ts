import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatHost } from '../../../domain/inventory/cidr.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import {
  IpamModel,
  type ModelAddress,
  type ModelPrefix,
  type ModelRange,
  type Verdict,
} from '../../support/ipamModel.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let vrfs: { id: string | null; lax: boolean }[];
let rounds = 0;

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  const vrf = async (name: string, enforceUnique: boolean) =>
    (await root.post('/api/inventory/vrfs', { name, enforceUnique })).body.id as string;
  vrfs = [
    { id: null, lax: false },
    { id: await vrf('strict', true), lax: false },
    { id: await vrf('lax', false), lax: true },
  ];
});
afterAll(() => app.stop());

const MODES = ['static', 'pool', 'dynamic'];

/** What may happen; numbers choose among what is there. */
const step = fc.record({
  what: fc.constantFrom(
    'prefix',
    'prefix',
    'prefix',
    'range',
    'address',
    'address',
    'movePrefix',
    'movePrefix',
    'moveAddress',
    'moveRange',
    'dropPrefix',
    'dropPrefix',
    'dropAddress',
    'dropRange',
  ),
  pick: fc.nat(1_000),
  vrf: fc.constantFrom(0, 0, 0, 0, 0, 1, 2),
  other: fc.constantFrom(false, false, false, false, true),
  shorter: fc.integer({ min: 0, max: 8 }),
  at: fc.nat(255),
  to: fc.nat(255),
  parent: fc.option(fc.nat(1_000), { freq: 4, nil: null }),
  mode: fc.nat(2),
  shared: fc.boolean(),
  keepVrf: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The corner of the address space of one round: 256 addresses of each family. */
class Round {
  readonly model = new IpamModel(
    (vrf) => vrfs.find(({ id }) => (id ?? 'global') === vrf)?.lax ?? false,
  );
  private readonly number: number;

  constructor(number: number) {
    this.number = number;
  }

  private base = (family: 4 | 6): bigint =>
    family === 4
      ? (10n << 24n) + (BigInt(this.number) << 8n)
      : (0x20010db8n << 96n) + (BigInt(this.number) << 80n);

  private host = (family: 4 | 6, at: number) => this.base(family) + BigInt(at);

  /** Most of a round is in one VRF and one family, so that it becomes crowded there. */
  private familyOf = ({ other }: Step): 4 | 6 => ((this.number % 2 === 0) === other ? 4 : 6);

  private vrfOf = ({ vrf }: Step) => vrfs[(vrf + this.number) % vrfs.length];

  private block(asked: Step) {
    const { shorter, at } = asked;
    const family = this.familyOf(asked);
    const size = 1n << BigInt(shorter);
    const first = (this.host(family, at) / size) * size;
    return { family, first, last: first + size - 1n, length: (family === 4 ? 32 : 128) - shorter };
  }

  private pickOf = <T>(list: readonly T[], pick: number): T | undefined =>
    list[pick % Math.max(1, list.length)];

  /** What a step asks for, and what the model says of it; undefined when there is nothing to do it to. */
  plan(
    asked: Step,
  ):
    | {
        mutation: { resource: string; operation: string; record: Record<string, unknown> };
        verdict: Verdict;
        accept(id: string): void;
      }
    | undefined {
    const { model } = this;
    const vrf = this.vrfOf(asked);
    const family = this.familyOf(asked);
    const key = vrf?.id ?? 'global';
    const kind = asked.what.replace(/^(move|drop)/, '').toLowerCase();
    const list = { prefix: model.prefixes, range: model.ranges, address: model.addresses }[
      kind
    ] as { id: string; vrf: string; family: 4 | 6 }[];
    // Half of the moves and deletes are of prefixes that have others in them: there most can go wrong.
    const parents =
      kind === 'prefix' && asked.shared
        ? model.prefixes.filter((p) =>
            model.prefixes.some((child) => model.closest(child.vrf, child)?.id === p.id),
          )
        : [];
    const target =
      asked.what === kind
        ? undefined
        : this.pickOf(parents.length > 0 ? parents : list, asked.pick);
    if (asked.what !== kind && !target) return undefined;
    const resource =
      { prefix: 'prefixes', range: 'ip-ranges', address: 'ip-addresses' }[kind] ?? '';
    if (asked.what.startsWith('drop') && target) {
      const orphaning = kind === 'prefix' && model.orphans(target as ModelPrefix, null);
      return {
        mutation: { resource, operation: 'delete', record: { id: target.id } },
        verdict: { errors: [], conflicts: orphaning ? ['orphan'] : [] },
        accept: () => void list.splice(list.indexOf(target), 1),
      };
    }
    const operation = target ? 'update' : 'create';
    const into = target && asked.keepVrf ? target.vrf : key;
    const id = target?.id ?? '';
    const [place, own] = [{ vrfId: into === 'global' ? null : into }, target ? { id } : {}];
    const put =
      <T extends { id: string }>(of: T[], next: T) =>
      (made: string) => {
        if (target)
          of.splice(
            of.findIndex((each) => each.id === id),
            1,
            next,
          );
        else of.push({ ...next, id: made });
      };
    if (kind === 'prefix') {
      const block = this.block(asked);
      const mode = MODES[asked.mode] ?? 'static';
      const parent =
        asked.parent === null ? null : (this.pickOf(model.prefixes, asked.parent)?.id ?? null);
      const next: ModelPrefix = { ...block, id, vrf: into, mode };
      const cidr = `${formatHost(block.family, block.first)}/${block.length}`;
      return {
        mutation: {
          resource,
          operation,
          record: {
            ...own,
            ...place,
            cidr,
            allocationMode: mode,
            ...(parent !== null && { parentPrefixId: parent }),
          },
        },
        verdict: model.prefix(next, parent),
        accept: put(model.prefixes, next),
      };
    }
    if (kind === 'range') {
      const next: ModelRange = {
        id,
        vrf: into,
        family,
        first: this.host(family, asked.at),
        last: this.host(family, asked.to),
      };
      const record = {
        ...own,
        ...place,
        startAddress: formatHost(next.family, next.first),
        endAddress: formatHost(next.family, next.last),
      };
      const unchanged = model.ranges.some(
        (r) =>
          r.id === id &&
          r.vrf === into &&
          r.family === next.family &&
          r.first === next.first &&
          r.last === next.last,
      );
      return {
        mutation: { resource, operation, record },
        verdict: unchanged ? { errors: [], conflicts: [] } : model.range(next),
        accept: put(model.ranges, next),
      };
    }
    const first = this.host(family, asked.at);
    const next: ModelAddress = { id, vrf: into, family, first, last: first, shared: asked.shared };
    const record = {
      ...own,
      ...place,
      address: formatHost(next.family, first),
      role: asked.shared ? 'anycast' : null,
    };
    return {
      mutation: { resource, operation, record },
      verdict: model.address(next),
      accept: put(model.addresses, next),
    };
  }
}

const codes = (list: readonly { code: string }[]) =>
  [...new Set(list.map(({ code }) => code))].sort();
const distinct = (list: readonly string[]) => [...new Set(list)].sort();

/** The tree and the usage that are stored, against the model. */
async function compareAll(round: Round): Promise<void> {
  const { db, inventory } = app.deps;
  const ids = round.model.prefixes.map(({ id }) => id);
  const stored = await db('prefixes').whereIn('id', ids).select('id', 'parent_prefix_id');
  expect(stored.length).toBe(ids.length);
  const caller = {
    tenantId: 'platform',
    rights: {
      grants: [
        {
          role: { permissions: new Set(['inventory:read']) },
          level: 'platform',
          targetId: 'platform',
        },
      ],
    },
  } as any;
  for (const prefix of round.model.prefixes) {
    const { parent_prefix_id: parentId } = stored.find(({ id }) => id === prefix.id) as {
      parent_prefix_id: string | null;
    };
    const parent = round.model.prefixes.find(({ id }) => id === parentId);
    const closest = round.model.closest(prefix.vrf, prefix);
    expect([prefix, parent && [parent.first, parent.length]]).toEqual([
      prefix,
      closest && [closest.first, closest.length],
    ]);
    if (!round.model.hasTwin(prefix))
      expect((await inventory.space.usage(caller, prefix.id)).used).toBe(round.model.used(prefix));
  }
}

async function one(round: Round, asked: Step): Promise<void> {
  const planned = round.plan(asked);
  if (!planned) return;
  const { mutation, verdict, accept } = planned;
  const status = verdict.errors.length > 0 ? 400 : verdict.conflicts.length > 0 ? 409 : 200;
  const said = await root.post('/api/validation/inventory', mutation);
  expect([
    mutation,
    said.status,
    codes(said.body.validation.errors),
    codes(said.body.validation.conflicts),
  ]).toEqual([mutation, status, distinct(verdict.errors), distinct(verdict.conflicts)]);
  const { id, ...fields } = mutation.record;
  const path = `/api/inventory/${mutation.resource}`;
  const done =
    mutation.operation === 'create'
      ? await root.post(path, fields)
      : mutation.operation === 'update'
        ? await root.put(`${path}/${String(id)}`, fields)
        : await root.delete(`${path}/${String(id)}`);
  expect([mutation, done.status]).toEqual([
    mutation,
    status === 200 ? { create: 201, update: 200, delete: 204 }[mutation.operation] : status,
  ]);
  if (status === 200) accept(done.body.id as string);
}

/** Several at once, each on top of the valid ones before it; what is made in the batch is not referred to by it. */
async function several(round: Round, steps: readonly Step[]): Promise<void> {
  const known = new Set(
    [...round.model.prefixes, ...round.model.ranges, ...round.model.addresses].map(({ id }) => id),
  );
  const planned = [];
  for (const asked of steps) {
    const next = round.plan(asked);
    const refers = [next?.mutation.record.id, next?.mutation.record.parentPrefixId].filter(
      (id) => id !== undefined,
    );
    if (!next || refers.some((id) => !known.has(id as string))) continue;
    planned.push(next);
    if (next.verdict.errors.length === 0 && next.verdict.conflicts.length === 0)
      next.accept(`new:${planned.length - 1}`);
  }
  if (planned.length === 0) return;
  const mutations = planned.map(({ mutation }) => mutation);
  const said = await root.post('/api/validation/inventory', { mutations });
  const done = await root.post('/api/inventory/bulk', { mode: 'each', mutations });
  expect(done.status).toBe(200);
  for (const [i, { mutation, verdict }] of planned.entries()) {
    const wanted = [mutation, distinct(verdict.errors), distinct(verdict.conflicts)];
    expect([
      mutation,
      codes(done.body.results[i].errors),
      codes(done.body.results[i].conflicts),
    ]).toEqual(wanted);
    expect([
      mutation,
      codes(said.body.results[i].validation.errors),
      codes(said.body.results[i].validation.conflicts),
    ]).toEqual(wanted);
    for (const each of [...round.model.prefixes, ...round.model.ranges, ...round.model.addresses])
      if (each.id === `new:${i}`) each.id = done.body.results[i].id as string;
  }
}

test('random histories: verdicts, tree, uniqueness and usage are those of a naive model, and validate and write agree', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          { weight: 4, arbitrary: step.map((each) => [each]) },
          { weight: 1, arbitrary: fc.array(step, { minLength: 2, maxLength: 6 }) },
        ),
        { minLength: 20, maxLength: 50 },
      ),
      async (history) => {
        const round = new Round(++rounds);
        for (const steps of history)
          await (steps.length === 1 && steps[0] ? one(round, steps[0]) : several(round, steps));
        await compareAll(round);
      },
    ),
    { numRuns: Number(process.env.IPAM_RUNS ?? 20), endOnFailure: true },
  );
}, 600_000);
