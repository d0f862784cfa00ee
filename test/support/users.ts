import type { AssignmentRecord } from '../../api/access/schemas.ts';
import type { TokenResponse, UserWithPassword } from '../../api/auth/schemas.ts';
import type { TestClient, TestRequest } from './client.ts';
import type { TestApp } from './app.ts';
import { assertDefined } from '../../domain/shared/assert.ts';

/** One page of a list. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/** The first item of a page, which must not be empty. */
export const first = <T>({ items }: Page<T>): T => assertDefined(items[0], 'first item');

export const PASSWORD = 'correct horse battery';

let userCount = 0;

export type TestUser = {
  id: string;
  username: string;
  client: TestClient;
  refreshToken: string;
  accessToken: string;
};

/** A platform administrator behind the gateway. */
export const admin = (app: TestApp): TestClient =>
  app.client.as({ actor: 'root', roles: 'platform-admin' });

export const login = (
  app: TestApp,
  username: string,
  password: string | null = PASSWORD,
  more: object = {},
): TestRequest<TokenResponse> =>
  app.client
    .as({ token: null })
    .post<TokenResponse>('/api/auth/login/local', { username, password, ...more });

/** Creates a local account with these roles at their scopes, and signs in. */
export async function createUser(
  app: TestApp,
  ...roles: (string | { roleId: string; tenantId?: string; siteId?: string; deviceId?: string })[]
): Promise<TestUser> {
  // Files of one process share the count: names are in the order in which they are created.
  const username = `person-${String(userCount++).padStart(5, '0')}`;
  const user = await admin(app)
    .post<UserWithPassword>('/api/users', {
      username,
      password: PASSWORD,
      mustChangePassword: false,
    })
    .expect(201);
  for (const role of roles) {
    // The tenant of the request exists, also without a record.
    const tenant = typeof role === 'string' ? undefined : role.tenantId;
    await app.client
      .as({ actor: 'root', roles: 'platform-admin', ...(tenant !== undefined && { tenant }) })
      .post<AssignmentRecord>('/api/rbac/assignments', {
        userId: user.id,
        ...(typeof role === 'string' ? { roleId: role } : role),
      })
      .expect(201);
  }
  const { accessToken, refreshToken } = await login(app, username).expect(200);
  return {
    id: user.id,
    username,
    client: app.client.as({ token: accessToken }),
    refreshToken: assertDefined(refreshToken, 'refreshToken'),
    accessToken,
  };
}

/** Inserts a tenant, if there is no record of it. */
export async function seedTenant({ deps: { db } }: TestApp, id: string): Promise<void> {
  await db('tenants').insert({ id, name: id }).onConflict('id').ignore();
}

/** Inserts a site and a device of a tenant. */
export async function seedSiteAndDevice(
  app: TestApp,
  { site, device, tenant }: { site?: string; device?: string; tenant: string },
): Promise<void> {
  const { db } = app.deps;
  if (site !== undefined)
    await db('sites').insert({ id: site, tenant_id: tenant, name: site }).onConflict('id').ignore();
  if (device !== undefined)
    await db('devices').insert({
      id: device,
      tenant_id: tenant,
      site_id: site ?? null,
      name: device,
    });
}
