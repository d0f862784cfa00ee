import { describe, expect, test } from '@jest/globals';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { writableFields } from '../../domain/inventory/resource.ts';
import type { TestApp } from '../support/app.ts';
import { comparable, idOfNone } from '../support/attacks/answers.ts';
import type { TenantEstate } from '../support/attacks/tenantEstate.ts';
import { dumpOutside, dumpOwn, inParallel } from '../support/attacks/tenantRows.ts';
import { leaksOfAcme, withTwoTenants } from '../support/attacks/twoTenants.ts';
import { assignedToApprovers } from '../support/approvals.ts';
import type { TestClient, TestResponse } from '../support/client.ts';
import { recordFactory, type InventoryRecord, type Validation } from '../support/inventory.ts';

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

type Base = () => Record<string, unknown>;
/** A record that beta can create, for each resource of tenants. */
let bases: Record<string, Base>;

const admin = (tenant: string): TestClient =>
  app.client.as({ actor: `${tenant}-admin`, roles: 'platform-admin', tenant });

withTwoTenants(async (fixture) => {
  ({ app, acme, beta, ofAcme } = fixture);
  const { shared } = fixture;
  mallory = admin('beta');
  const make = recordFactory(() => mallory);
  const ports = ['free1', 'free2'].map((name) =>
    make('interfaces', { deviceId: beta.devices, name }),
  );
  const [a, b] = await Promise.all(ports);
  const atSite = { name: 'new', siteId: beta.sites };
  bases = {
    regions: () => ({ name: 'new' }),
    sites: () => ({ name: 'new' }),
    locations: () => atSite,
    racks: () => atSite,
    devices: () => ({ ...atSite, deviceTypeId: shared['device-types'] }),
    interfaces: () => ({ name: 'new', deviceId: beta.devices }),
    cables: () => ({ aInterfaceId: a?.id, bInterfaceId: b?.id }),
    vrfs: () => ({ name: 'new' }),
    'vlan-groups': () => ({ name: 'new' }),
    vlans: () => ({ name: 'new', vid: 77 }),
    prefixes: () => ({ cidr: '10.12.77.0/24' }),
    'ip-ranges': () => ({ startAddress: '10.12.78.1', endAddress: '10.12.78.9' }),
    'ip-addresses': () => ({ address: '10.12.79.1/24' }),
    'custom-fields': () => ({ resource: 'racks', name: 'new', type: 'text' }),
  };
  const owner = admin('acme');
  targets = new Map();
  for (const name of [...Object.keys(bases), 'tenants']) {
    const id = acme[name as keyof TenantEstate];
    targets.set(name, await owner.get<InventoryRecord>(`/api/inventory/${name}/${id}`).expect(200));
  }
});

/** Values of lookup fields that no record has. */
const NONE: Readonly<Record<string, string>> = {
  address: '10.250.0.9/24',
  cidr: '10.250.0.0/16',
  startAddress: '10.250.0.9',
};

/** A reference to a record of acme, the same to a record that nobody has, and the texts in which they differ. */
type Reference = { resource: string; field: string; foreign: unknown; none: unknown };

function referencesOf(resource: string): Reference[] {
  return writableFields(RESOURCES[resource as keyof typeof RESOURCES]).flatMap(
    ([field, { reference }]) => {
      if (reference === undefined || RESOURCES[reference].scopeKind === 'catalogue') return [];
      const record = targets.get(reference);
      if (!record) throw new Error(`acme has none of ${reference}`);
      const byName = RESOURCES[reference].lookupFields.flatMap((name) => {
        const value = record[name];
        return typeof value === 'string'
          ? [{ foreign: { [name]: value }, none: { [name]: NONE[name] ?? 'nobody-has-it' } }]
          : [];
      });
      return [{ foreign: record.id, none: idOfNone(record.id) }, ...byName].map((pair) => ({
        resource,
        field,
        ...pair,
      }));
    },
  );
}

/** The text in a reference that the client has sent. */
const sentIn = (reference: unknown): string =>
  typeof reference === 'string' ? reference : String(Object.values(reference as object)[0]);

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
    const references = Object.keys(bases).flatMap(referencesOf);
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
