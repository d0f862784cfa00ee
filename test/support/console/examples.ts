import { assertDefined } from '../../../domain/shared/assert.ts';
import { selfSigned } from '../certificate.ts';
import type { TestClient } from '../client.ts';
import { eventually } from '../eventually.ts';
import type { TestUser } from '../users.ts';

type WithId = { id: string };

/** Ids of records for the pages of an area, by the names of the parameters in their paths. */
type Examples = Promise<Record<string, string>>;

const create = async (client: TestClient, path: string, body: object): Promise<string> =>
  (await client.post<WithId>(path, body, { prefer: 'wait=20' }).expect(201)).id;

/** A record of every kind that has a page in the area of access. */
export async function accessExamples(root: TestClient, someone: TestUser): Examples {
  const providerId = await create(root, '/api/auth/providers', {
    kind: 'saml',
    name: 'Company',
    enabled: false,
    config: {
      entryPoint: 'https://idp.example.net/sso',
      idpEntityId: 'https://idp.example.net',
      idpCertificates: [(await selfSigned('idp')).cert],
    },
  });
  const mapping = { providerId, externalGroup: 'net-admins', roleId: 'operator' };
  const { items } = await root
    .get<{ items: WithId[] }>(`/api/rbac/assignments?userId=${someone.id}`)
    .expect(200);
  return {
    userId: someone.id,
    accountId: await create(root, '/api/service-accounts', { name: 'ci', ownerId: someone.id }),
    providerId,
    roleId: await create(root, '/api/rbac/roles', {
      id: 'net-jobs',
      name: 'Network jobs',
      permissions: ['job:read'],
      jobTypes: ['net.*'],
    }),
    assignmentId: assertDefined(items[0], 'assignment').id,
    mappingId: await create(root, '/api/rbac/provider-mappings', mapping),
    tokenId: await create(someone.client, '/api/auth/tokens', { name: 'script' }),
  };
}

/** A backup, and a preview of its restore. */
export async function backupExamples(root: TestClient, request: object): Examples {
  const backups = await create(root, '/api/backup/create', request);
  const { jobId } = await root
    .post<{ jobId: string }>('/api/backup/restore/validate', { backupId: backups })
    .expect(200);
  return { backups, runId: jobId };
}

/** A webhook of the platform, and the event that it gets about itself. */
export async function webhookExamples(platform: TestClient): Examples {
  const firstOf = async (path: string): Promise<string> => {
    const { items } = await eventually(
      () => platform.get<{ items: WithId[] }>(path).expect(200),
      (page) => page.items.length > 0,
    );
    return assertDefined(items[0], path).id;
  };
  const endpoint = { endpointUrl: 'https://hooks.invalid/', eventTypes: ['webhook.created'] };
  const webhooks = await create(platform, '/api/webhooks', endpoint);
  return {
    webhooks,
    deliveries: await firstOf(`/api/deliveries?webhookId=${webhooks}`),
    events: await firstOf('/api/events?type=webhook.created'),
    'event-types': 'job.failed',
  };
}
