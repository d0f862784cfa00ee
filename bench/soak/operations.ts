import type { BenchEndpoint } from '../events/endpoint.ts';
import type { TenantApi } from '../fairness/api.ts';

/** How long users wait for it: the groups whose durations are shown. */
export const GROUPS = ['read', 'write', 'job', 'long job', 'approval', 'batch'] as const;
export type Group = (typeof GROUPS)[number];

/** One request, or a few that belong together. `share` is how often it occurs, in relation to the others. */
export type Operation = { group: Group; share: number; run(n: number): Promise<unknown> };

/** The path of the endpoint that accepts every event. */
export const HEALTHY = '/healthy';

const BATCH = 50;
const SCHEDULES = 20;
const FOLLOWERS = 20;
const WAIT = { prefer: 'wait=60' };

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** What a tenant has before the load: a VRF, webhooks, schedules and clients that follow logs. */
export async function prepareTenant(api: TenantApi, endpoint: BenchEndpoint) {
  const vrf = await api.send('POST', '/api/inventory/vrfs', { name: 'soak', tenantId: api.tenant });
  const parent = await api.send('POST', '/api/inventory/prefixes', {
    cidr: '10.0.0.0/8',
    allocationMode: 'pool',
    vrfId: vrf.id,
  });
  const webhook = (path: string, eventType: string) =>
    api.send('POST', '/api/webhooks', { endpointUrl: endpoint.url(path), eventTypes: [eventType] });
  await webhook(HEALTHY, 'inventory.ip-address.created');
  await webhook('/failing', 'inventory.ip-address.deleted');
  for (const n of numbers(SCHEDULES))
    await api.send('POST', '/api/schedules', {
      name: `soak ${n}`,
      cronExpression: '* * * * *',
      jobType: 'core.echo',
      payload: { n },
    });
  const job = await api.send('POST', '/api/jobs', {
    type: 'core.sleep',
    // It takes an hour twice, which is longer than the load.
    payload: { durationMs: 3_600_000, failAttempts: 1 },
  });
  const closers = await Promise.all(
    numbers(FOLLOWERS).map((n) =>
      api.open('GET', `/api/jobs/${String(job.id)}/logs?follow=true`, undefined, {
        'x-service-actor-id': `follower-${n}`,
      }),
    ),
  );
  return {
    vrfId: String(vrf.id),
    prefixId: String(parent.id),
    stopFollowers: () => closers.forEach((close) => close?.()),
  };
}

/** A little of everything that users, scripts and schedules do. */
export function createOperations(
  api: TenantApi,
  { vrfId, prefixId }: { vrfId: string; prefixId: string },
): Operation[] {
  /** Addresses that exist, oldest first. */
  const addresses: string[] = [];
  const addressPath = (id: string) => `/api/inventory/ip-addresses/${id}`;
  const network = (n: number) =>
    `172.${16 + ((n >> 12) & 15)}.${(n >> 4) & 255}.${(n & 15) * 16}/28`;
  let networks = 0;

  async function allocate() {
    const { id } = await api.send('POST', `/api/inventory/prefixes/${prefixId}/allocate`, {
      kind: 'address',
    });
    addresses.push(String(id));
  }
  async function update(n: number) {
    const id = addresses[n % Math.max(1, addresses.length)];
    await (id === undefined
      ? allocate()
      : api.attempt('PUT', addressPath(id), { description: `${n}` }));
  }
  async function remove() {
    const id = addresses.shift();
    await (id === undefined ? allocate() : api.send('DELETE', addressPath(id)));
  }
  async function approve() {
    const { id } = await api.send('POST', '/api/workflows', {
      type: 'change',
      title: 'Soak',
      payload: {},
      assignedUserIds: [],
      assignedRoleIds: ['platform-admin'],
      validationRequest: {
        resource: 'prefixes',
        operation: 'create',
        record: { cidr: network(networks++), vrfId },
      },
    });
    await api.send('POST', `/api/workflows/${String(id)}/approve`, undefined, {
      ...WAIT,
      'x-service-actor-id': 'soak-approver',
    });
  }
  const get = (path: string) => () => api.send('GET', path);
  const job = (type: string, payload: object) => () =>
    api.send('POST', '/api/jobs', { type, payload }, WAIT);
  const batch = () =>
    api.send('POST', '/api/inventory/bulk', {
      mutations: numbers(BATCH).map(() => ({
        resource: 'prefixes',
        operation: 'create',
        record: { cidr: network(networks++), vrfId },
      })),
    });
  return [
    { group: 'write', share: 8, run: allocate },
    { group: 'write', share: 4, run: update },
    { group: 'write', share: 7, run: remove },
    { group: 'read', share: 4, run: get('/api/inventory/ip-addresses?limit=50') },
    { group: 'read', share: 3, run: get('/api/inventory/prefixes?contains=10.0.0.7') },
    { group: 'read', share: 2, run: get(`/api/inventory/prefixes/${prefixId}/usage`) },
    { group: 'read', share: 4, run: get('/api/jobs?limit=50') },
    { group: 'read', share: 2, run: get('/api/audit?limit=50') },
    { group: 'job', share: 7, run: job('core.echo', { hello: 'soak' }) },
    { group: 'long job', share: 1, run: job('core.sleep', { durationMs: 50 }) },
    { group: 'approval', share: 0.5, run: approve },
    { group: 'batch', share: 0.25, run: batch },
  ];
}

/** An endless sequence of the operations in which each has its share, spread evenly. */
export function* sequence(operations: readonly Operation[]): Generator<Operation, never> {
  const total = operations.reduce((sum, { share }) => sum + share, 0);
  const credits = operations.map(() => 0);
  for (;;) {
    let next = 0;
    for (const [i, { share }] of operations.entries()) {
      credits[i] = (credits[i] ?? 0) + share;
      if ((credits[i] ?? 0) > (credits[next] ?? 0)) next = i;
    }
    credits[next] = (credits[next] ?? 0) - total;
    const chosen = operations[next];
    if (chosen !== undefined) yield chosen;
  }
}
