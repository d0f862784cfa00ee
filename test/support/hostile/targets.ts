import type { TestApp } from '../app.ts';
import type { TestClient } from '../client.ts';
import { seedEstate } from '../estate.ts';
import { admin, PASSWORD } from '../users.ts';
import type { Operation } from './document.ts';

type Item = { id?: string; name?: string; tenantId?: string };
type Listed = { items?: Item[]; backups?: Item[] };

/** Records that `seedEstate` does not make: what runs leave behind, and what examples name. */
export async function seedTargets(app: TestApp, operations: readonly Operation[]): Promise<void> {
  await seedEstate(app);
  const root = admin(app);
  await root.post('/api/inventory/tenants', { id: 'red', name: 'Red' }).expect(201);
  // In the order of the document, in which examples refer to earlier ones.
  for (const { method, path, body } of operations)
    if (method === 'POST' && /^\/api\/inventory\/[^/]+$/.test(path) && body)
      await root.post(path, body.example);
  const provider = await root
    .post<{ id: string }>('/api/auth/providers', {
      kind: 'ldap',
      name: 'Directory',
      config: { url: 'ldaps://127.0.0.1:9', userBaseDn: 'dc=example', allowPrivateNetwork: true },
    })
    .expect(201);
  await root
    .post('/api/rbac/provider-mappings', {
      providerId: provider.id,
      externalGroup: 'admins',
      roleId: 'viewer',
    })
    .expect(201);
  const users = await root.get<Listed>('/api/users').expect(200);
  const account = await root
    .post<{ id: string }>('/api/service-accounts', { name: 'ci', ownerId: users.items?.[0]?.id })
    .expect(201);
  await root.post(`/api/service-accounts/${account.id}/tokens`, { name: 'pipeline' }).expect(201);
  const atPlatform = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
  const webhooks = await atPlatform.get<Listed>('/api/webhooks').expect(200);
  await atPlatform.post(`/api/webhooks/${webhooks.items?.[0]?.id}/test`).expect(200);
  await root.post('/api/backup/create', { mode: 'full' }, { prefer: 'wait=30' }).expect(201);
  await root.send(
    'POST',
    '/api/inventory/import?resource=tags',
    'id,name\nimported,Imported\nbad id,\n',
    { 'content-type': 'text/csv', prefer: 'wait=30' },
  );
  const { items = [] } = await root.get<Listed>('/api/schedules').expect(200);
  await root.post(`/api/schedules/${items[0]?.id}/trigger`).expect(202);
}

/** Where the ids of a path parameter are listed, if not at the path before it. */
const LISTS: Readonly<Record<string, string>> = {
  '/api/jobs': '/api/jobs?status=succeeded&status=failed',
  '/api/workflows': '/api/workflows?status=pending',
  '/api/runner/jobs': '/api/jobs?status=succeeded&status=failed',
  '/api/auth/oidc/callback': '/api/auth/providers',
  '/api/auth/saml/metadata': '/api/auth/providers',
};

/** Ids of real records for the path parameter of an operation; none if it has no parameter. */
export async function findIds(client: TestClient, { path }: Operation): Promise<string[]> {
  const collection = path.split('/{')[0] ?? '';
  if (collection === path) return [];
  if (collection === '/api/quotas' || collection === '/api/retention') {
    const { items = [] } = await client.get<Listed>(collection).expect(200);
    return items.flatMap(({ tenantId }) => tenantId ?? []);
  }
  if (collection === '/api/docs/assets') return ['swagger-ui.css'];
  if (collection === '/api/deliveries') {
    const webhooks = await client.get<Listed>('/api/webhooks?limit=200').expect(200);
    for (const { id } of webhooks.items ?? []) {
      const { items = [] } = await client.get<Listed>(`/api/webhooks/${id}/deliveries`).expect(200);
      if (items.length > 0) return items.flatMap((delivery) => delivery.id ?? []);
    }
    return [];
  }
  const { items, backups } = await client.get<Listed>(LISTS[collection] ?? collection).expect(200);
  // Pools and job types have no other id than their name.
  return (items ?? backups ?? []).flatMap(({ id, name }) => id ?? name ?? []);
}

/** Fields of request bodies that must differ from those of other records. */
const UNIQUE: Readonly<Record<string, (value: unknown, n: number) => unknown>> = {
  id: (value, n) => `${String(value)}-${n}`,
  name: (value, n) => `${String(value)}_${n}`,
  username: (value, n) => `${String(value)}_${n}`,
  model: (value, n) => `${String(value)}-${n}`,
  rd: (_, n) => `65000:${1_000 + n}`,
  vid: (_, n) => 100 + (n % 100),
  cidr: (_, n) => `10.${64 + ((n >> 8) & 63)}.${n & 255}.0/24`,
  address: (_, n) => `10.${128 + ((n >> 8) & 63)}.${n & 255}.5/24`,
  startAddress: (_, n) => `10.${192 + ((n >> 8) & 31)}.${n & 255}.10`,
  endAddress: (_, n) => `10.${192 + ((n >> 8) & 31)}.${n & 255}.20`,
};

/** Bodies that get further than the example of the document. */
const EXAMPLES: Readonly<Record<string, object | string>> = {
  'POST /api/jobs (http.request)': {
    type: 'http.request',
    payload: { url: 'http://127.0.0.1:9/', headers: { accept: 'text/plain' } },
  },
  'POST /api/auth/providers (ldap)': {
    kind: 'ldap',
    name: 'Directory',
    config: { url: 'ldaps://127.0.0.1:9', userBaseDn: 'dc=example', allowPrivateNetwork: true },
  },
  'POST /api/auth/providers (oidc)': {
    kind: 'oidc',
    name: 'Company',
    config: { issuer: 'https://login.example.net', clientId: 'holdfast' },
  },
  'POST /api/inventory/import (text/csv)': 'id,name\nfrom-a-file,From a file\n',
  'POST /api/auth/password': {
    currentPassword: PASSWORD,
    newPassword: 'another horse battery',
  },
};

/** Makes bodies from the example of an operation: each names real records, and is new if it creates one. */
export async function bodyMaker(
  client: TestClient,
  { name, method, path, body }: Operation,
): Promise<(n: number) => unknown> {
  const text = JSON.stringify(EXAMPLES[name] ?? body?.example ?? null);
  const ids = new Map<string, string>();
  let used = 0;
  for (const [id = '', kind = ''] of text.matchAll(/\b([a-z]+)_[0-9a-z]{26}\b/g)) {
    const list = ID_LISTS[kind];
    if (list === undefined) continue;
    const { items, backups } = await client.get<Listed>(list).expect(200);
    const real = (items ?? backups ?? [])[used++]?.id;
    if (real !== undefined) ids.set(id, real);
  }
  const example: unknown = JSON.parse(
    text.replaceAll(/\b[a-z]+_[0-9a-z]{26}\b/g, (id) => ids.get(id) ?? id),
  );
  const creates = method === 'POST' && !path.includes('{') && !path.startsWith('/api/auth/login');
  if (!creates || typeof example !== 'object' || example === null) return () => example;
  return (n) => withUniqueFields(example, n);
}

/** The fields of a record, also where a body has it as `record`. */
const withUniqueFields = (body: object, n: number): object =>
  Object.fromEntries(
    Object.entries(body).map(([name, value]: [string, unknown]) => [
      name,
      name === 'record'
        ? withUniqueFields(value as object, n)
        : (UNIQUE[name]?.(value, n) ?? value),
    ]),
  );

const ID_LISTS: Readonly<Record<string, string>> = {
  usr: '/api/users',
  tok: '/api/auth/tokens',
  idp: '/api/auth/providers',
  bkp: '/api/backup?status=completed',
  int: '/api/inventory/interfaces',
};
