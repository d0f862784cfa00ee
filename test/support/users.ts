import type { TestAnswer, TestClient } from './client.ts';
import type { TestApp } from './app.ts';

export const PASSWORD = 'correct horse battery';

let made = 0;

export type Person = {
  id: string;
  username: string;
  client: TestClient;
  refreshToken: string;
  accessToken: string;
};

/** Somebody who may do everything, behind the gateway. */
export const admin = (app: TestApp): TestClient =>
  app.client.as({ actor: 'root', roles: 'platform-admin' });

export const login = (
  app: TestApp,
  username: string,
  password = PASSWORD,
  more: object = {},
): Promise<TestAnswer> =>
  app.client.as({ token: null }).post('/api/auth/login/local', { username, password, ...more });

/** A new local account with these roles, signed in. Each role may name where it is held. */
export async function person(
  app: TestApp,
  ...roles: (string | { roleId: string; tenantId?: string; siteId?: string; deviceId?: string })[]
): Promise<Person> {
  const username = `person-${made++}`;
  const user = await admin(app).post('/api/users', {
    username,
    password: PASSWORD,
    mustChangePassword: false,
  });
  if (user.status !== 201) throw new Error(JSON.stringify(user.body));
  for (const role of roles) {
    const given = await admin(app).post('/api/rbac/assignments', {
      userId: user.body.id,
      ...(typeof role === 'string' ? { roleId: role } : role),
    });
    if (given.status !== 201) throw new Error(JSON.stringify(given.body));
  }
  const { body } = await login(app, username);
  return {
    id: user.body.id,
    username,
    client: app.client.as({ token: body.accessToken }),
    refreshToken: body.refreshToken,
    accessToken: body.accessToken,
  };
}

/** Sites and devices as the inventory will make them. */
export async function place(
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
