import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../api/approvals/schemas.ts';
import type { ScheduleRecord } from '../../api/schedules/schemas.ts';
import { startApp, type TestApp } from '../support/app.ts';
import {
  approve,
  approveAndWait,
  assignedToApprovers,
  reject,
  untilExecution,
} from '../support/approvals.ts';
import {
  ALLOWED,
  ATTACKS,
  seedSiteEstate,
  TENANT,
  type Attack,
  type SiteEstate,
} from '../support/attacks/siteEstate.ts';
import { csv, importedRows } from '../support/attacks/files.ts';
import { inventoryRows } from '../support/attacks/tenantRows.ts';
import type { TestClient } from '../support/client.ts';
import { isThorough } from '../support/effort.ts';
import type { BulkReport, InventoryRecord } from '../support/inventory.ts';
import { triggerSchedule, waitForRuns } from '../support/schedules.ts';
import { admin, createUser, type Page, type TestUser } from '../support/users.ts';

/**
 * Users who may write at one site, or at one device, send changes that reach further, through every door. One user reads the
 * whole tenant, and gets the missing permission as the answer; another reads nothing else. Nothing in the inventory
 * changes; through the same doors each of them changes what is theirs.
 */
type Level = keyof typeof ATTACKS;
const LEVELS: readonly Level[] = ['site', 'device'];

let app: TestApp;
let root: TestClient;
let estate: SiteEstate;
/** `sighted` reads all of the tenant, and creates jobs, schedules and requests there. */
let callers: Record<Level, { sighted: TestUser; blind: TestUser }>;
let automation: string;

beforeAll(async () => {
  app = await startApp();
  root = admin(app);
  estate = await seedSiteEstate(root);
  const permissions = [
    'inventory:read',
    'workflow:read',
    'workflow:write',
    'job:read',
    'job:write',
  ];
  const role = await root
    .post<{ id: string }>('/api/rbac/roles', {
      name: 'automation',
      permissions: [...permissions, 'schedule:read', 'schedule:write'],
    })
    .expect(201);
  automation = role.id;
  const at = async (grant: object) => {
    const operator = { roleId: 'operator', ...grant };
    return {
      sighted: await createUser(app, operator, { roleId: automation, tenantId: TENANT }),
      blind: await createUser(app, operator),
    };
  };
  const { site, own } = estate.here;
  callers = { site: await at({ siteId: site }), device: await at({ deviceId: own }) };
});
afterAll(() => app.stop());

/** What `act` returns, and the records that it has changed, created or deleted. */
async function observe<T>(act: () => Promise<T>): Promise<{ answer: T; changed: string[] }> {
  const before = await inventoryRows(app.deps.db);
  const answer = await act();
  const after = await inventoryRows(app.deps.db);
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return { answer, changed: [...keys].filter((key) => before[key] !== after[key]) };
}

const keyOf = ({ resource, record }: Attack): string => `${resource}/${String(record.id)}`;

function sendDirect(client: TestClient, { resource, operation, record }: Attack) {
  const { id, ...fields } = record;
  const path = `/api/inventory/${resource}`;
  if (operation === 'create') return client.post(path, record);
  const one = `${path}/${String(id)}`;
  return operation === 'update' ? client.put(one, fields) : client.delete(one);
}

/** Sends mutations, and returns an answer for each. */
type Door = (client: TestClient, attacks: readonly Attack[]) => Promise<string[]>;

/** Imports a file. Returns the outcome of each row, or the code of its error. */
const importFile = async (client: TestClient, query: string, text: string, type: string) =>
  (await importedRows(client, query, text, type)).map(
    ({ outcome, errors }) => errors[0]?.code ?? outcome ?? 'none',
  );

/** The row of a mutation: a new record, or all fields of one as an export writes them, with the change. */
async function rowOf({ resource, operation, record }: Attack): Promise<Record<string, unknown>> {
  if (operation === 'create') return record;
  const path = `/api/inventory/${resource}/${String(record.id)}`;
  const present = await root.get<InventoryRecord>(path).expect(200);
  // The parent of a prefix is computed.
  return { ...present, ...('parentPrefixId' in present && { parentPrefixId: null }), ...record };
}

/** Imports mutations as CSV: a file of new and changed records for each resource. */
async function importCsv(client: TestClient, attacks: readonly Attack[]): Promise<string[]> {
  const outcomes: string[] = [];
  const files = Map.groupBy(
    attacks.filter(({ operation }) => operation !== 'delete'),
    ({ resource }) => resource,
  );
  for (const [resource, mutations] of files) {
    const text = csv(await Promise.all(mutations.map(rowOf)));
    outcomes.push(...(await importFile(client, `resource=${resource}`, text, 'text/csv')));
  }
  return outcomes;
}

/** Imports mutations as lines. A line cannot clear a field: null is not given. */
const importLines =
  (query: string): Door =>
  (client, attacks) =>
    importFile(
      client,
      query,
      attacks
        .filter(({ record }) => !Object.values(record).includes(null))
        .map((attack) => `${JSON.stringify(attack)}\n`)
        .join(''),
      'application/x-ndjson',
    );

async function sendBatch(client: TestClient, mutations: readonly Attack[]): Promise<string[]> {
  const { results } = await client
    .post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations })
    .expect(200);
  return results.map(({ outcome, errors }) => errors[0]?.code ?? outcome);
}

/** Sends each mutation by itself. Returns the statuses. */
const oneByOne =
  (send: (client: TestClient, attack: Attack) => Promise<{ status: number }>): Door =>
  async (client, attacks) => {
    const answers: string[] = [];
    for (const attack of attacks) answers.push(String((await send(client, attack)).status));
    return answers;
  };

/** One by one for doors that do what `direct` does: one mutation of each kind is enough to show that they do. */
const oneOfEachKind =
  (send: (client: TestClient, attack: Attack) => Promise<{ status: number }>): Door =>
  (client, attacks) => {
    const kinds = Map.groupBy(attacks, ({ resource, operation }) => `${resource} ${operation}`);
    const some = [...kinds.values()].flatMap((each) => each.slice(0, 1));
    return oneByOne(send)(client, isThorough() ? attacks : some);
  };

/** The doors through which a mutation comes in. */
const DOORS: Readonly<Record<string, Door>> = {
  direct: oneByOne(sendDirect),
  'bulk, all': oneOfEachKind((client, attack) =>
    client.post('/api/inventory/bulk', { mode: 'all', mutations: [attack] }),
  ),
  'bulk, each': sendBatch,
  'import of CSV': importCsv,
  'import of NDJSON': importLines(''),
  'import of NDJSON, all': importLines('mode=all'),
};

/** Doors that write nothing by themselves. */
const QUESTIONS: Readonly<Record<string, Door>> = {
  'dry run of an import': importLines('dryRun=true'),
  'request for approval': oneOfEachKind((client, change) =>
    client.post('/api/workflows', { ...requestOf(change), tenantId: TENANT }),
  ),
};

/** Doors that the blind go through as well. */
const FOR_BLIND = ['direct', 'bulk, each', 'import of NDJSON'];

const requestOf = (validationRequest: Attack) => ({
  ...assignedToApprovers,
  title: 'x',
  validationRequest,
});

/** The answers of a refusal to a user who reads the record, and to all others. */
const MISSING = /^(403|permission_denied)$/;
const REFUSED = /^(400|403|404|409|permission_denied|not_found|conflict)$/;

describe.each(LEVELS)('a right at one %s', (level) => {
  test.each(Object.entries({ ...DOORS, ...QUESTIONS }))(
    'is refused everything further through: %s',
    async (name, door) => {
      const attacks = ATTACKS[level](estate);
      const { sighted, blind } = callers[level];
      const { answer: answers, changed } = await observe(async () => ({
        sighted: await door(sighted.client, attacks),
        blind: FOR_BLIND.includes(name) ? await door(blind.client, attacks) : [],
      }));
      expect(changed).toEqual([]);
      expect(answers.sighted.length).toBeGreaterThan(attacks.length / 3);
      expect(answers.sighted.filter((each) => !MISSING.test(each))).toEqual([]);
      expect(answers.blind.filter((each) => !REFUSED.test(each))).toEqual([]);
    },
  );

  test.each(Object.entries(DOORS))('changes what is there through: %s', async (_, door) => {
    for (const { client } of Object.values(callers[level])) {
      const attack = ALLOWED[level](estate);
      const { answer, changed } = await observe(() => door(client, [attack]));
      expect([answer, changed]).toEqual([
        [expect.stringMatching(/^(200|updated)$/)],
        [keyOf(attack)],
      ]);
    }
  });

  test('takes nothing along in a batch', async () => {
    const { client } = callers[level].sighted;
    const allowed = ALLOWED[level](estate);
    const attacks = LEVELS.slice(0, LEVELS.indexOf(level) + 1).flatMap((each) =>
      ATTACKS[each](estate),
    );
    const batch = [allowed, ...attacks];
    const all = await observe(() =>
      client.post('/api/inventory/bulk', { mode: 'all', mutations: batch }).expect(403),
    );
    expect(all.changed).toEqual([]);
    const each = await observe(() => sendBatch(client, batch));
    expect(each.changed).toEqual([keyOf(allowed)]);
  });
});

test('space is allocated where the right is, for what is there', async () => {
  const { here, there } = estate;
  const allocate = (client: TestClient, id: string, body: object) =>
    client.post<InventoryRecord>(`/api/inventory/prefixes/${id}/allocate`, body);
  const address = { kind: 'address' };
  const prefix = { kind: 'prefix', prefixLength: 28 };
  const onPort = (interfaceId: string | undefined) => ({ ...address, record: { interfaceId } });
  const { changed } = await observe(async () => {
    for (const { client } of Object.values(callers.site)) {
      for (const id of [estate.wide, estate.theirs])
        for (const body of [address, prefix, { ...prefix, record: { siteId: here.site } }])
          expect([403, 404]).toContain((await allocate(client, id, body)).status);
      for (const body of [
        onPort(there.ownPorts[2]),
        { ...prefix, record: { siteId: there.site } },
        { ...address, record: { tenantId: 'blue' } },
      ])
        expect([400, 403]).toContain((await allocate(client, estate.ours, body)).status);
    }
    for (const { client } of Object.values(callers.device))
      for (const body of [address, prefix, onPort(here.ownPorts[2])])
        expect([403, 404]).toContain((await allocate(client, estate.ours, body)).status);
  });
  expect(changed).toEqual([]);
  for (const { client } of Object.values(callers.site)) {
    await allocate(client, estate.ours, onPort(here.ownPorts[2])).expect(201);
    await allocate(client, estate.ours, prefix).expect(201);
  }
});

describe('an approved change', () => {
  const change = (): Attack => ({
    resource: 'devices',
    operation: 'update',
    record: { id: estate.here.spare, description: `approved ${++changes}` },
  });
  let changes = 0;
  const ask = async (client: TestClient, attack: Attack): Promise<string> => {
    const body = { ...requestOf(attack), siteId: estate.here.site };
    return (await client.post<ApprovalRecord>('/api/workflows', body).expect(201)).id;
  };
  const decider = async (grant: object) =>
    (await createUser(app, { roleId: 'approver', ...grant })).client;
  const spare = (fields: object) =>
    root.put(`/api/inventory/devices/${estate.here.spare}`, fields).expect(200);

  test('is decided by those who may where it is, and is made there', async () => {
    const { client } = callers.site.sighted;
    const attack = change();
    const { changed } = await observe(async () => {
      const id = await ask(client, attack);
      for (const grant of [{ siteId: estate.there.site }, { deviceId: estate.here.spare }])
        for (const decide of [approve, reject])
          expect([403, 404]).toContain((await decide(await decider(grant), id)).status);
      const atSite = await decider({ siteId: estate.here.site });
      const wide = await root
        .post<ApprovalRecord>('/api/workflows', { ...requestOf(attack), tenantId: TENANT })
        .expect(201);
      expect([403, 404]).toContain((await approve(atSite, wide.id)).status);
      expect(await approveAndWait(atSite, id)).toMatchObject({ execution: 'succeeded' });
    });
    expect(changed).toEqual([keyOf(attack)]);
  });

  test('is not made by who has lost the right, nor on what has left the site', async () => {
    const person = await createUser(
      app,
      { roleId: 'operator', siteId: estate.here.site },
      { roleId: automation, tenantId: TENANT },
    );
    const atTenant = await decider({ tenantId: TENANT });
    const execute = async (id: string, execution: 'failed' | 'stale') => {
      await approve(atTenant, id).expect(200);
      return untilExecution(atTenant, id, execution);
    };
    const moved = await ask(person.client, change());
    await spare({ siteId: estate.there.site, name: 'guest' });
    const first = await observe(() => execute(moved, 'stale'));
    await spare({ siteId: estate.here.site, name: 'here-spare' });
    const denied = await ask(person.client, change());
    const grants = `/api/rbac/assignments`;
    const { items } = await root
      .get<Page<{ id: string; siteId: string | null }>>(`${grants}?userId=${person.id}`)
      .expect(200);
    for (const { id, siteId } of items)
      if (siteId !== null) await root.delete(`${grants}/${id}`).expect(204);
    const second = await observe(() => execute(denied, 'failed'));
    expect([first.changed, second.changed]).toEqual([[], []]);
    expect(second.answer.error).toMatchObject({ code: 'permission_lost' });
  });
});

describe('jobs and schedules, which belong to the tenant', () => {
  const apply = (attack: Attack) => ({ mutations: [attack] });
  const yearly = (client: TestClient, attack: Attack) =>
    client
      .post<ScheduleRecord>('/api/schedules', {
        name: `yearly ${++schedules}`,
        cronExpression: '0 3 1 1 *',
        jobType: 'inventory.apply',
        payload: apply(attack),
      })
      .expect(201);
  let schedules = 0;

  test.each(LEVELS)('are not enough to write with a right at one %s', async (level) => {
    const { client } = callers[level].sighted;
    const [attack] = ATTACKS[level](estate);
    const owner = await createUser(app, { roleId: 'operator', tenantId: TENANT });
    const allowed = ALLOWED[level](estate);
    if (!attack) throw new Error('no attack');
    const refused = await observe(async () => {
      for (const mutation of [attack, allowed])
        await client
          .post('/api/jobs', { type: 'inventory.apply', payload: apply(mutation) })
          .expect(403);
      const own = await yearly(client, attack);
      await client.post(`/api/schedules/${own.id}/trigger`).expect(403);
      const path = `/api/schedules/${(await yearly(owner.client, allowed)).id}`;
      await client.post(`${path}/trigger`).expect(403);
      // Who changes what it does owns it, and brings no right.
      await client.put(path, { payload: apply(attack) }).expect(200);
      for (const each of [path, `/api/schedules/${own.id}`])
        await owner.client.post(`${each}/trigger`).expect(409);
    });
    expect(refused.changed).toEqual([]);
    const made = await observe(async () => {
      const { id } = await yearly(owner.client, allowed);
      await triggerSchedule(owner.client, id);
      await waitForRuns(owner.client, id, ([run]) => run?.jobStatus === 'succeeded');
    });
    expect(made.changed).toEqual([keyOf(allowed)]);
  });
});
