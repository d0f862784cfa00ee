import { afterAll, beforeAll, expect } from '@jest/globals';
import { startApp, type TestApp } from './app.ts';
import type { TestAnswer, TestClient } from './client.ts';
import { eventually } from './eventually.ts';

export const byRole = {
  type: 'change',
  payload: {},
  assignedUserIds: [],
  assignedRoleIds: ['approver'],
};

/** A request that must come to be. */
export async function request(client: TestClient, more: object = {}): Promise<any> {
  const answer = await client.post('/api/workflows', { title: 'a request', ...byRole, ...more });
  expect([answer.status, answer.body]).toEqual([201, answer.body]);
  return answer.body;
}

export const echo = { jobType: 'core.echo', jobPayload: { hello: 'world' } };
export const prefix = (cidr: string, more: object = {}) => ({
  validationRequest: { resource: 'prefixes', operation: 'create', record: { cidr, ...more } },
});

/** Several changes, in order. */
export const change = (...mutations: [operation: string, resource: string, record: object][]) => ({
  validationRequest: {
    mutations: mutations.map(([operation, resource, record]) => ({ operation, resource, record })),
  },
});

export const approve = (
  client: TestClient,
  id: string,
  body: object = {},
  headers: Record<string, string> = {},
): Promise<TestAnswer> => client.post(`/api/workflows/${id}/approve`, body, headers);
export const reject = (client: TestClient, id: string, body: object = {}): Promise<TestAnswer> =>
  client.post(`/api/workflows/${id}/reject`, body);
export const cancel = (client: TestClient, id: string, body: object = {}): Promise<TestAnswer> =>
  client.post(`/api/workflows/${id}/cancel`, body);
export const read = async (client: TestClient, id: string): Promise<any> =>
  (await client.get(`/api/workflows/${id}`)).body;

export const untilExecution = (
  client: TestClient,
  id: string,
  execution: string,
  withinMs = 20_000,
): Promise<any> =>
  eventually(
    () => read(client, id),
    (found) => found.execution === execution,
    { withinMs },
  );
export const untilStatus = (
  client: TestClient,
  id: string,
  status: string,
  withinMs = 20_000,
): Promise<any> =>
  eventually(
    () => read(client, id),
    (found) => found.status === status,
    { withinMs },
  );

/** What the audit trail and the events have of a request, in short. */
export const trailOf = async ({ deps: { db } }: TestApp, id: string): Promise<string[]> =>
  (await db('audit_entries').where({ subject_id: id }).orderBy('id')).map(
    ({ action, outcome }: any) => (outcome === 'done' ? action : `${action} ${outcome}`),
  );
export const eventsOf = async ({ deps: { db } }: TestApp, id: string): Promise<string[]> =>
  (await db('events').where({ subject_id: id }).orderBy('id')).map(
    ({ type }: any) => type as string,
  );

/** The product for all tests of a file, and people in a tenant of their own. */
export function withApprovals(env: Record<string, string> = {}, options: { idle?: boolean } = {}) {
  const bed = {} as { app: TestApp };
  beforeAll(async () => {
    bed.app = await startApp(env, options);
  });
  afterAll(() => bed.app.stop());
  let tenants = 0;
  return {
    bed,
    people() {
      const tenant = `a${tenants++}`;
      const as = (actor: string, roles: string) => bed.app.client.as({ actor, roles, tenant });
      return {
        tenant,
        as,
        asker: as('asker', 'operator'),
        decider: as('decider', 'approver'),
        other: as('other', 'approver'),
      };
    },
  };
}
