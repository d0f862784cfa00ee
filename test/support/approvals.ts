import { afterAll, beforeAll } from '@jest/globals';
import type { ApprovalRecord } from '../../api/approvals/schemas.ts';
import { startApp, type TestApp } from './app.ts';
import type { TestClient, TestRequest } from './client.ts';
import { eventually } from './eventually.ts';

/** The fields of a request that tests do not care about. Any approver may decide. */
export const assignedToApprovers = {
  type: 'change',
  payload: {},
  assignedUserIds: [],
  assignedRoleIds: ['approver'],
};

/** Creates an approval request. Fails if the API refuses it. */
export const createRequest = (
  client: TestClient,
  overrides: object = {},
): Promise<ApprovalRecord> =>
  client
    .post<ApprovalRecord>('/api/workflows', {
      title: 'a request',
      ...assignedToApprovers,
      ...overrides,
    })
    .expect(201);

export const echoJob = { jobType: 'core.echo', jobPayload: { hello: 'world' } };
export const sleepJob = (durationMs: number) => ({
  jobType: 'core.sleep',
  jobPayload: { durationMs },
});
export const createPrefix = (cidr: string, overrides: object = {}) => ({
  validationRequest: { resource: 'prefixes', operation: 'create', record: { cidr, ...overrides } },
});

/** Several mutations, in order. */
export const changeRequest = (
  ...mutations: [operation: string, resource: string, record: object][]
) => ({
  validationRequest: {
    mutations: mutations.map(([operation, resource, record]) => ({ operation, resource, record })),
  },
});

export const approve = <T = ApprovalRecord>(
  client: TestClient,
  id: string,
  body: object = {},
  headers: Record<string, string> = {},
): TestRequest<T> => client.post<T>(`/api/workflows/${id}/approve`, body, headers);

/** Approves, and waits until the execution has finished. */
export const approveAndWait = (client: TestClient, id: string): Promise<ApprovalRecord> =>
  approve(client, id, {}, { prefer: 'wait=20' }).expect(200);

export const reject = <T = ApprovalRecord>(
  client: TestClient,
  id: string,
  body: object = {},
): TestRequest<T> => client.post<T>(`/api/workflows/${id}/reject`, body);

export const cancel = <T = ApprovalRecord>(
  client: TestClient,
  id: string,
  body: object = {},
): TestRequest<T> => client.post<T>(`/api/workflows/${id}/cancel`, body);

export const readRequest = (client: TestClient, id: string): Promise<ApprovalRecord> =>
  client.get<ApprovalRecord>(`/api/workflows/${id}`).expect(200);

export const untilExecution = (
  client: TestClient,
  id: string,
  execution: ApprovalRecord['execution'],
  withinMs = 20_000,
): Promise<ApprovalRecord> =>
  eventually(
    () => readRequest(client, id),
    (found) => found.execution === execution,
    { withinMs },
  );
export const untilStatus = (
  client: TestClient,
  id: string,
  status: ApprovalRecord['status'],
  withinMs = 20_000,
): Promise<ApprovalRecord> =>
  eventually(
    () => readRequest(client, id),
    (found) => found.status === status,
    { withinMs },
  );

/**
 * The actions in the audit log of a request, oldest first; with the outcome unless it is `done`.
 */
export const auditActionsOf = async ({ deps: { db } }: TestApp, id: string): Promise<string[]> =>
  (
    await db<{ id: string; subject_id: string; action: string; outcome: string }>('audit_entries')
      .where({ subject_id: id })
      .orderBy('id')
  ).map(({ action, outcome }) => (outcome === 'done' ? action : `${action} ${outcome}`));

/** The types of the events about a request, oldest first. */
export const eventTypesOf = async ({ deps: { db } }: TestApp, id: string): Promise<string[]> =>
  (
    await db<{ id: string; subject_id: string; type: string }>('events')
      .where({ subject_id: id })
      .orderBy('id')
  ).map(({ type }) => type);

/** An application for all tests of a file, and users in a tenant of their own for each test. */
export function withApprovals(env: Record<string, string> = {}, options: { idle?: boolean } = {}) {
  const fixture = {} as { app: TestApp };
  beforeAll(async () => {
    fixture.app = await startApp(env, options);
  });
  afterAll(() => fixture.app.stop());
  let tenants = 0;
  return {
    fixture,
    users() {
      const tenant = `a${tenants++}`;
      const as = (actor: string, roles: string) => fixture.app.client.as({ actor, roles, tenant });
      return {
        tenant,
        as,
        requester: as('asker', 'operator'),
        decider: as('decider', 'approver'),
        other: as('other', 'approver'),
      };
    },
  };
}
