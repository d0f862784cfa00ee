import { describe, expect, test } from '@jest/globals';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { TestApp } from '../support/app.ts';
import { comparable } from '../support/attacks/answers.ts';
import {
  createBases,
  readTargets,
  referencesOf,
  sentIn,
  type Bases,
  type Reference,
} from '../support/attacks/referenceCases.ts';
import type { TenantEstate } from '../support/attacks/tenantEstate.ts';
import { dumpOutside, dumpOwn, inParallel } from '../support/attacks/tenantRows.ts';
import { leaksOfAcme, withTwoTenants } from '../support/attacks/twoTenants.ts';
import { assignedToApprovers } from '../support/approvals.ts';
import type { TestClient, TestResponse } from '../support/client.ts';
import { isThorough } from '../support/effort.ts';
import type { BatchValidation, BulkReport, InventoryRecord } from '../support/inventory.ts';

/**
 * Every reference field of the inventory, by id and by each name, is filled with a record of acme in a body that belongs to
 * beta otherwise: through every door the answer is the one for a record that does not exist, and nothing is written.
 */
let app: TestApp;
let mallory: TestClient;
let ofAcme: ReadonlySet<string>;
let acme: TenantEstate;
let beta: TenantEstate;
/** The records of acme. */
let targets: Map<string, InventoryRecord>;

/** Records that beta can create. */
let bases: Bases;

const admin = (tenant: string): TestClient =>
  app.client.as({ actor: `${tenant}-admin`, roles: 'platform-admin', tenant });

withTwoTenants(async (fixture) => {
  ({ app, acme, beta, ofAcme } = fixture);
  const { shared } = fixture;
  mallory = admin('beta');
  bases = await createBases(mallory, beta, shared);
  targets = await readTargets(admin('acme'), acme, [...Object.keys(bases), 'tenants']);
});

/** The validations that a caller may have concurrently without waiting. */
const CONCURRENT_VALIDATIONS = 2;

type Door = (
  resource: string,
  record: Record<string, unknown>,
  own: string,
) => Promise<TestResponse>;
const mutations = (resource: string, record: object) => [{ resource, operation: 'create', record }];

/** Every door through which a record comes in; `own` is a record of beta that an update changes. */
const DOORS: Readonly<Record<string, Door>> = {
  create: (resource, record) => mallory.post(`/api/inventory/${resource}`, record),
  update: (resource, record, own) => mallory.put(`/api/inventory/${resource}/${own}`, record),
};

/** Doors that do what the others do: they get one reference of each field. */
const MORE_DOORS: Readonly<Record<string, Door>> = {
  'bulk, all or none': (resource, record) =>
    mallory.post('/api/inventory/bulk', { mode: 'all', mutations: mutations(resource, record) }),
  approval: (resource, record) =>
    mallory.post('/api/workflows', {
      ...assignedToApprovers,
      title: 'new',
      validationRequest: { mutations: mutations(resource, record) },
    }),
};

/** A validation for another tenant is refused as a whole. */
const validateOne: Door = (resource, record) =>
  mallory.post('/api/validation/inventory', { mutations: mutations(resource, record) });

/** The doors that a reference goes through by itself. */
const doorsFor = ({ field, by }: Reference): Readonly<Record<string, Door>> => ({
  ...DOORS,
  ...((by === null || isThorough()) && MORE_DOORS),
  ...(field === 'tenantId' && { validateOne }),
});

/** Doors for many records: what is said of each does not depend on the others, which are refused. */
const BATCHES: Readonly<Record<string, (mutations: object[]) => Promise<object[]>>> = {
  bulk: async (many) =>
    (
      await mallory
        .post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations: many })
        .expect(200)
    ).results,
  validation: async (many) =>
    (
      await mallory
        .post<BatchValidation>('/api/validation/inventory', { mutations: many })
        .expect(400)
    ).results,
};

/** What is wrong with the results of a batch of references, and of one of references to nothing. */
async function judgeBatch(name: string, references: readonly Reference[]): Promise<unknown[]> {
  const send = async (valueOf: (reference: Reference) => unknown) => {
    const many = references.flatMap((reference) => {
      const { resource, field } = reference;
      return mutations(resource, { ...bases[resource]?.(), [field]: valueOf(reference) });
    });
    const results = (await BATCHES[name]?.(many)) ?? [];
    return references.map((reference, i) =>
      JSON.stringify(results[i]).replaceAll(sentIn(valueOf(reference)), '<sent>'),
    );
  };
  const given = await send(({ foreign }) => foreign);
  const other = await send(({ none }) => none);
  return references.flatMap(({ resource, field, foreign }, i) => {
    const text = given[i] ?? '';
    const isFine =
      /"invalid"|"valid":false/.test(text) &&
      text === other[i] &&
      leaksOfAcme(text, ofAcme).length === 0;
    return isFine ? [] : [[name, resource, field, foreign, text, other[i]]];
  });
}

/** What is wrong with the answers of one door to one reference. */
async function judge(name: string, door: Door, { resource, field, foreign, none }: Reference) {
  const base = name === 'update' ? {} : bases[resource]?.();
  const own = beta[resource as keyof TenantEstate];
  if (!base) throw new Error(`${name} ${resource}`);
  const send = async (value: unknown) => {
    const answer = await door(resource, { ...base, [field]: value }, own);
    if (answer.status === 429) throw new Error(`${name} was not answered`);
    return { answer, text: comparable(answer, sentIn(value)) };
  };
  const [given, other] = [await send(foreign), await send(none)];
  const found = leaksOfAcme(given.text, ofAcme);
  return found.length > 0 || given.answer.status < 300 || given.text !== other.text
    ? [name, resource, field, foreign, given.text, other.text]
    : undefined;
}

describe('a reference to a record of another tenant', () => {
  test('is refused like one to nothing, by id and by name, through every door', async () => {
    const references = Object.keys(bases).flatMap((resource) => referencesOf(resource, targets));
    expect(references.length).toBeGreaterThan(50);
    const before = [await dumpOutside(app.deps.db, 'beta'), await dumpOwn(app.deps.db, 'beta')];
    const wrong: unknown[] = [];
    const within = references.filter(({ field }) => field !== 'tenantId');
    wrong.push(...(await judgeBatch('bulk', references)));
    wrong.push(...(await judgeBatch('validation', within)));
    await inParallel(
      references.flatMap((reference) =>
        Object.entries(doorsFor(reference)).map(([name, door]) => ({ name, door, reference })),
      ),
      async ({ name, door, reference }) => {
        const finding = await judge(name, door, reference);
        if (finding) wrong.push(finding);
      },
      CONCURRENT_VALIDATIONS,
    );
    expect(wrong).toEqual([]);
    expect([await dumpOutside(app.deps.db, 'beta'), await dumpOwn(app.deps.db, 'beta')]).toEqual(
      before,
    );
  }, 120_000);

  test('and only the reference is what is wrong with the body', async () => {
    const { results } = await mallory
      .post<BatchValidation>('/api/validation/inventory', {
        mutations: Object.entries(bases).flatMap(([resource, base]) => mutations(resource, base())),
      })
      .expect(200);
    const found = results.map(({ resource, validation: { errors, conflicts } }) => [
      ...[resource, errors, conflicts],
    ]);
    expect(found).toEqual(Object.keys(bases).map((name) => [name, [], []]));
  });

  test('has a body here for every resource with references', () => {
    const withReferences = Object.values(RESOURCES)
      .filter(({ scopeKind }) => scopeKind !== 'catalogue' && scopeKind !== 'isTenant')
      .map(({ name }) => name as string);
    expect(withReferences.filter((name) => !(name in bases))).toEqual([]);
  });
});
