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
import type { InventoryRecord, Validation } from '../support/inventory.ts';

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
  bulk: (resource, record) =>
    mallory.post('/api/inventory/bulk', { mode: 'each', mutations: mutations(resource, record) }),
  'bulk, all or none': (resource, record) =>
    mallory.post('/api/inventory/bulk', { mode: 'all', mutations: mutations(resource, record) }),
  validation: (resource, record) =>
    mallory.post('/api/validation/inventory', { mutations: mutations(resource, record) }),
  approval: (resource, record) =>
    mallory.post('/api/workflows', {
      ...assignedToApprovers,
      title: 'new',
      validationRequest: { mutations: mutations(resource, record) },
    }),
};

/** What is wrong with the answers of one door to one reference. */
async function judge(name: string, { resource, field, foreign, none }: Reference) {
  const door = DOORS[name];
  const base = name === 'update' ? {} : bases[resource]?.();
  const own = beta[resource as keyof TenantEstate];
  if (!door || !base) throw new Error(`${name} ${resource}`);
  const send = async (value: unknown) => {
    const answer = await door(resource, { ...base, [field]: value }, own);
    if (answer.status === 429) throw new Error(`${name} was not answered`);
    return { answer, text: comparable(answer, sentIn(value)) };
  };
  const [given, other] = [await send(foreign), await send(none)];
  const found = leaksOfAcme(given.text, ofAcme);
  const isWritten = given.answer.status < 300 && !['bulk', 'validation'].includes(name);
  return found.length > 0 || isWritten || given.text !== other.text
    ? [name, resource, field, foreign, given.text, other.text]
    : undefined;
}

describe('a reference to a record of another tenant', () => {
  test('is refused like one to nothing, by id and by name, through every door', async () => {
    const references = Object.keys(bases).flatMap((resource) => referencesOf(resource, targets));
    expect(references.length).toBeGreaterThan(50);
    const before = [await dumpOutside(app.deps.db, 'beta'), await dumpOwn(app.deps.db, 'beta')];
    const wrong: unknown[] = [];
    await inParallel(
      references.flatMap((reference) => Object.keys(DOORS).map((door) => ({ door, reference }))),
      async ({ door, reference }) => {
        const finding = await judge(door, reference);
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
    const found: unknown[] = [];
    for (const [resource, base] of Object.entries(bases)) {
      const { validation } = await mallory
        .post<Validation>('/api/validation/inventory', {
          resource,
          operation: 'create',
          record: base(),
        })
        .expect(200);
      found.push([resource, validation.errors, validation.conflicts]);
    }
    expect(found).toEqual(Object.keys(bases).map((name) => [name, [], []]));
  });

  test('has a body here for every resource with references', () => {
    const withReferences = Object.values(RESOURCES)
      .filter(({ scopeKind }) => scopeKind !== 'catalogue' && scopeKind !== 'isTenant')
      .map(({ name }) => name as string);
    expect(withReferences.filter((name) => !(name in bases))).toEqual([]);
  });
});
