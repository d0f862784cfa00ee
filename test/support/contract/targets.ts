import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestApp } from '../app.ts';
import type { TestClient } from '../client.ts';
import { PASSWORD } from '../users.ts';
import { OIDC_CONFIG, type Target, type TargetId } from './operations.ts';

type Created = { id: string };

/** Makes the records that requests name; each request gets one of its own, but for the backup. */
export function targetMaker(app: TestApp): TargetId {
  const root = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
  let count = 0;
  let backup: Promise<string> | undefined;
  const create = async (path: string, body: object, headers = {}): Promise<string> =>
    (await root.post<Created>(path, body, headers).expect(201)).id;
  const createBackup = () =>
    create(
      '/api/backup/create',
      { mode: 'partial', sections: ['settings'] },
      { prefer: 'wait=30' },
    );
  const makers: Readonly<Record<Target, () => Promise<string>>> = {
    approval: () =>
      create('/api/workflows', {
        type: 'change',
        title: 'a request',
        payload: {},
        assignedUserIds: [],
        assignedRoleIds: ['workflow-approve-only', 'platform-admin'],
      }),
    assignment: async () =>
      create('/api/rbac/assignments', { userId: await idOf('user'), roleId: 'rbac-write-only' }),
    backup: () => (backup ??= createBackup()),
    deletableBackup: createBackup,
    engine: async () => {
      const { engines } = await root
        .get<{ engines: { name: string }[] }>('/api/backup')
        .expect(200);
      return assertDefined(engines[0], 'engine').name;
    },
    event: () => firstEventId(root),
    job: () => create('/api/jobs', { type: 'core.echo', payload: {} }),
    mapping: async () =>
      create('/api/rbac/provider-mappings', {
        providerId: await idOf('provider'),
        externalGroup: `group ${++count}`,
        roleId: 'rbac-write-only',
      }),
    provider: () =>
      create('/api/auth/providers', {
        kind: 'oidc',
        name: `oidc ${++count}`,
        config: OIDC_CONFIG,
        enabled: false,
      }),
    schedule: () =>
      create('/api/schedules', {
        name: `schedule ${++count}`,
        cronExpression: '0 3 1 1 *',
        timezone: 'UTC',
        jobType: 'core.echo',
        payload: {},
        enabled: true,
      }),
    user: () =>
      create('/api/users', {
        username: `assignee-${++count}`,
        password: PASSWORD,
        mustChangePassword: false,
      }),
    webhook: () =>
      create('/api/webhooks', {
        endpointUrl: 'http://127.0.0.1:9/hook',
        eventTypes: ['job.failed'],
        enabled: true,
      }),
  };
  const idOf: TargetId = (target) => makers[target]();
  return idOf;
}

async function firstEventId(root: TestClient): Promise<string> {
  const { items } = await root.get<{ items: Created[] }>('/api/events').expect(200);
  return assertDefined(items[0], 'event').id;
}
