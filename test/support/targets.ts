import { afterAll, beforeAll } from '@jest/globals';
import { Job } from '../../db/models/Job.ts';
import { AttemptFailed } from '../../services/jobs/attempts.ts';
import { startApp, type TestApp } from './app.ts';
import { createArchiveFolder } from './backups.ts';
import type { TestClient } from './client.ts';
import { targetTypes } from './targetTypes.ts';
import { admin, createUser } from './users.ts';

/** A tenant with a device at each of two sites. */
export type Estate = {
  tenant: string;
  siteA: string;
  siteB: string;
  deviceA: string;
  deviceB: string;
};

type Created = { id: string };
type Where = { tenantId?: string; siteId?: string; deviceId?: string };

/**
 * Starts an application without background work whose job types include those of `targetTypes`. Its
 * jobs run when a test runs them.
 */
export function withTargets() {
  let app: TestApp;
  let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
  let count = 0;
  let catalogue: { deviceTypeId: string } | undefined;
  beforeAll(async () => {
    archives = await createArchiveFolder();
    app = await startApp(archives.env, { idle: true, extraJobTypes: targetTypes });
  });
  afterAll(async () => {
    await app.stop();
    await archives.remove();
  });

  const adminOf = (tenant: string): TestClient =>
    app.client.as({ actor: `admin-of-${tenant}`, roles: 'platform-admin', tenant });

  async function deviceType(): Promise<{ deviceTypeId: string }> {
    if (catalogue) return catalogue;
    const root = admin(app);
    const { id: manufacturerId } = await root
      .post<Created>('/api/inventory/manufacturers', { name: 'maker' })
      .expect(201);
    const { id } = await root
      .post<Created>('/api/inventory/device-types', { manufacturerId, model: 'm1' })
      .expect(201);
    return (catalogue = { deviceTypeId: id });
  }

  return {
    get app() {
      return app;
    },
    admin: adminOf,

    /** A new tenant with two sites and two devices. */
    async estate(name: string): Promise<Estate> {
      const tenant = `${name}-${++count}`;
      await admin(app).post('/api/inventory/tenants', { id: tenant, name: tenant }).expect(201);
      const make = async (resource: string, body: object) =>
        (await adminOf(tenant).post<Created>(`/api/inventory/${resource}`, body).expect(201)).id;
      const type = await deviceType();
      const [siteA, siteB] = [
        await make('sites', { name: 'site-a' }),
        await make('sites', { name: 'site-b' }),
      ];
      const deviceA = await make('devices', { name: 'dev-a', siteId: siteA, ...type });
      const deviceB = await make('devices', { name: 'dev-b', siteId: siteB, ...type });
      return { tenant, siteA, siteB, deviceA, deviceB };
    },

    /** An account with a role at a tenant, a site or a device. */
    user: async (roleId: string, where: Where): Promise<TestClient> =>
      (await createUser(app, { roleId, ...where })).client,

    /** A custom role. */
    role: async (name: string, permissions: readonly string[]): Promise<string> =>
      (
        await admin(app)
          .post<Created>('/api/rbac/roles', { name: `${name}-${++count}`, permissions })
          .expect(201)
      ).id,

    moveToTenant: async (deviceId: string, to: Estate): Promise<void> =>
      void (await app.deps
        .db('devices')
        .where({ id: deviceId })
        .update({ tenant_id: to.tenant, site_id: to.siteA, name: 'moved' })),

    /** Makes the first attempt of a job, as its workflow would, and returns the job. */
    async run(jobId: string): Promise<Job> {
      const { jobAttempts, db } = app.deps;
      const ref = { jobId, runId: 'run-of-test' };
      await jobAttempts
        .runAttempt(ref, 'inline', new AbortController().signal)
        .catch(async (error: unknown) => {
          if (!(error instanceof AttemptFailed) || error.retryInMs !== null) throw error;
          await jobAttempts.finalizeAbandoned(ref, 'failed', error.code);
        });
      return Job.query(db).findById(jobId).throwIfNotFound();
    },

    events: (jobId: string): Promise<object[]> =>
      app.deps.db('events').where({ subject_id: jobId }).orderBy('id'),

    audited: (jobId: string): Promise<object[]> =>
      app.deps.db('audit_entries').where({ subject_id: jobId }).orderBy('id'),
  };
}
