import { setTimeout as sleep } from 'node:timers/promises';
import { assertDefined } from '../../domain/shared/assert.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import { demoEstate } from '../../processes/cli/demoEstate.ts';
import type { Identity, Installation } from './installation.ts';

type Person = { id: string; username: string; token: string };
export type Demo = {
  users: { operator: Person; approver: Person; administrator: Person };
  approvalId: string;
  jobId: string;
  /** Of the records before a day of changes. */
  backupId: string;
  /** The network of a site, and a rack there. */
  prefixId: string;
  rackId: string;
};

const SITES = 3;
const BATCH_SIZE = 500;

type WithId = { id: string };

/** What people have done in an installation with the example estate: requests, jobs, schedules, tokens. */
export async function seedDemo(installation: Installation): Promise<Demo> {
  const { createUser } = installation;
  const operator = await createUser('mara.lindt', 'Mara Lindt', { roleId: 'operator' });
  const reads = { roleId: 'auditor' };
  const approver = await createUser('jonas.berg', 'Jonas Berg', { roleId: 'approver' }, reads);
  const role = { roleId: 'platform-admin' };
  const administrator = await createUser('ines.roth', 'Ines Roth', role);
  const as: Identity = { token: operator.token };
  await createEstate(installation);
  const backupId = await createBackup(installation, { token: administrator.token });
  await changeEstate(installation, as);
  await createSchedules(installation, as);
  await createTokens(installation, as);
  const approvalId = await createRequests(installation, as);
  const jobId = await createJobs(installation, as);
  const idOf = (path: string) => firstId(installation, path, as);
  return {
    ...{ users: { operator, approver, administrator }, approvalId, jobId, backupId },
    prefixId: await idOf('/api/inventory/prefixes?cidr=10.1.0.0/16'),
    rackId: await idOf('/api/inventory/racks?name=ams1-r1'),
  };
}

/** The id of the first record of a list. */
async function firstId({ send }: Installation, path: string, as: Identity): Promise<string> {
  const { items } = await send<{ items: WithId[] }>(path, undefined, as);
  return assertDefined(items[0], path).id;
}

/** A backup whose restore would undo the changes of a day. */
async function createBackup({ send }: Installation, as: Identity): Promise<string> {
  const backup = { mode: 'full', label: 'Before the move' };
  const { id } = await send<WithId>('/api/backup/create', backup, as);
  for (let n = 0; n < 100; n++) {
    const { status } = await send<{ status: string }>(`/api/backup/${id}`, undefined, as);
    if (status === 'completed') return id;
    await sleep(100);
  }
  throw new Error('The backup is not complete within 10 s');
}

/** The first sites of the example estate. */
async function createEstate({ send }: Installation): Promise<void> {
  let mutations: Mutation[] = [];
  let sites = 0;
  for (const mutation of demoEstate()) {
    if (mutation.resource === 'sites') sites += 1;
    if (sites > SITES) break;
    mutations.push(mutation);
    if (mutations.length < BATCH_SIZE) continue;
    await send('/api/inventory/bulk', { mode: 'all', mutations });
    mutations = [];
  }
  await send('/api/inventory/bulk', { mode: 'all', mutations });
}

/** What a person does on a day. */
async function changeEstate({ send }: Installation, as: Identity): Promise<void> {
  const records: readonly (readonly [string, object])[] = [
    ['sites', { name: 'ber1' }],
    ['racks', { name: 'ber1-r1', siteId: { name: 'ber1' } }],
    ['vlan-groups', { name: 'ber1', siteId: { name: 'ber1' } }],
    ['vlans', { vid: 110, name: 'ber1-office', groupId: { name: 'ber1' } }],
    ['prefixes', { cidr: '10.64.0.0/16', status: 'container', siteId: { name: 'ber1' } }],
    ['prefixes', { cidr: '10.64.10.0/24', siteId: { name: 'ber1' }, description: 'Office' }],
    ['ip-addresses', { address: '10.64.10.1', description: 'Gateway of the office' }],
  ];
  const mutations = records.map(([resource, record]) => ({
    resource,
    operation: 'create',
    record,
  }));
  await send('/api/inventory/bulk', { mode: 'all', mutations }, as);
}

async function createSchedules({ send }: Installation, as: Identity): Promise<void> {
  const runOnce = async (schedule: object) => {
    const { id } = await send<WithId>('/api/schedules', schedule, as);
    await send(`/api/schedules/${id}/trigger`, {}, as);
  };
  const schedules = [
    ['Address report', '30 6 * * 1-5', 'Europe/London', 'core.echo', { report: 'addresses' }],
    ['Cable check', '15 */4 * * *', 'UTC', 'core.echo', { check: 'cables' }],
    ['Month-end snapshot', '0 3 1 * *', 'Europe/Berlin', 'core.sleep', { durationMs: 4_000 }],
    ['Sunday dry run', '0 5 * * 0', 'America/New_York', 'core.sleep', { durationMs: 9_000 }],
  ] as const;
  for (const [name, cronExpression, timezone, jobType, payload] of schedules)
    await runOnce({ name, cronExpression, timezone, jobType, payload });
  const paused = { name: 'Old export', cronExpression: '0 1 * * *', timezone: 'UTC' };
  await send('/api/schedules', { ...paused, jobType: 'core.echo', enabled: false }, as);
}

async function createTokens({ send, origin }: Installation, as: Identity): Promise<void> {
  const { items } = await send<{ items: WithId[] }>(
    '/api/inventory/sites?name=ams1',
    undefined,
    as,
  );
  const tokens = [
    { name: 'nightly export', permissions: ['inventory:read'], readOnly: true },
    {
      name: 'pipeline',
      permissions: ['inventory:read', 'inventory:write', 'job:read', 'job:write'],
      resourceScopes: items.map(({ id }) => ({ siteId: id })),
      allowedNetworks: ['127.0.0.0/8', '10.20.0.0/16'],
    },
    { name: 'trial', expiresAt: new Date(Date.now() + 5 * DAY_MS).toISOString() },
  ];
  for (const token of tokens) {
    const made = await send<{ token: string }>('/api/auth/tokens', token, as);
    await fetch(`${origin}/api/auth/token`, {
      headers: { authorization: `Bearer ${made.token}` },
    });
  }
}

/** Requests for approval; returns the id of one that changes several records. */
async function createRequests({ send }: Installation, as: Identity): Promise<string> {
  const base = { type: 'change', assignedUserIds: [], assignedRoleIds: ['approver'] };
  const create = (title: string, ticket: string, validationRequest: object) =>
    send<WithId>('/api/workflows', { ...base, title, payload: { ticket }, validationRequest }, as);
  const { items } = await send<{ items: WithId[] }>(
    '/api/inventory/devices?name=fra1-d7',
    undefined,
    as,
  );
  for (const { id } of items)
    await create('Retire fra1-d7', 'CHG-1038', {
      resource: 'devices',
      operation: 'delete',
      record: { id },
    });
  const { id } = await create('Prefix for the new hall in Amsterdam', 'CHG-1042', {
    resource: 'prefixes',
    operation: 'create',
    record: { cidr: '10.1.0.0/21', description: 'Hall 4', status: 'container' },
  });
  return id;
}

/** Jobs with all ends; returns the id of one that is running. */
async function createJobs({ send }: Installation, as: Identity): Promise<string> {
  const create = (body: object) => send<WithId>('/api/jobs', body, as);
  const once = { maxAttempts: 1 };
  for (const report of ['racks', 'prefixes', 'cables', 'vlans'])
    await create({ type: 'core.echo', payload: { report } });
  await create({
    type: 'core.sleep',
    payload: { durationMs: 10, failAttempts: 3 },
    retryPolicy: once,
  });
  await create({
    type: 'http.request',
    payload: { url: 'http://127.0.0.1:9/report', method: 'GET' },
    retryPolicy: once,
  });
  const { id } = await create({
    type: 'core.sleep',
    payload: { durationMs: 120_000, failAttempts: 2 },
  });
  return id;
}
