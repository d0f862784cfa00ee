import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { startApp, type TestApp } from '../app.ts';
import { createArchiveFolder } from '../backups.ts';
import type { TestClient } from '../client.ts';
import { targetTypes } from '../targetTypes.ts';
import { leaksOf } from './answers.ts';
import {
  seedShared,
  seedTenantEstate,
  type SharedEstate,
  type TenantEstate,
} from './tenantEstate.ts';
import { idsOf } from './tenantRows.ts';

/** Starts an application without background work for a test file. */
export function withIdleApp(onReady: (app: TestApp) => Promise<void>): void {
  let archives: Awaited<ReturnType<typeof createArchiveFolder>> | undefined;
  let app: TestApp | undefined;
  beforeAll(async () => {
    archives = await createArchiveFolder();
    app = await startApp(archives.env, { idle: true, extraJobTypes: targetTypes });
    await onReady(app);
  });
  afterAll(async () => {
    await app?.stop();
    await archives?.remove();
  });
}

/** The second number of the networks of acme. */
export const NETWORK_OF_ACME = 211;

/** Finds what is of acme in a text. */
export const leaksOfAcme = leaksOf('acme', NETWORK_OF_ACME);

type TwoTenants = {
  app: TestApp;
  shared: SharedEstate;
  acme: TenantEstate;
  beta: TenantEstate;
  /** The ids of all rows of acme. */
  ofAcme: ReadonlySet<string>;
};

/** Starts an application where acme, and beta with the attackers, have records of every kind. */
export function withTwoTenants(onReady: (fixture: TwoTenants) => Promise<void>): void {
  withIdleApp(async (app) => {
    const shared = await seedShared(app);
    const [acme, beta] = await Promise.all([
      seedTenantEstate(app, { tenant: 'acme', label: 'acme', network: NETWORK_OF_ACME }, shared),
      seedTenantEstate(app, { tenant: 'beta', label: 'beta', network: 12 }, shared),
    ]);
    await onReady({ app, shared, acme, beta, ofAcme: await idsOf(app.deps.db, 'acme') });
  });
}

export type NewTenants = {
  app: TestApp;
  /** The number of the test in its file. */
  count: number;
  /** The tenants of the attacked and of the attacker. */
  ours: string;
  theirs: string;
  /** A caller whom a gateway names at a tenant. */
  actor(id: string, roles: string, tenant?: string): TestClient;
};

/** Starts an API without background work for a test file. Each test has two tenants of its own. */
export function withNewTenants(onTest: (fixture: NewTenants) => void): void {
  let app: TestApp;
  let count = 0;
  beforeAll(async () => {
    app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  });
  afterAll(() => app.stop());
  const actor = (id: string, roles: string, tenant?: string) =>
    app.client.as({ actor: id, roles, ...(tenant !== undefined && { tenant }) });
  beforeEach(() => {
    count++;
    onTest({ app, count, ours: `ours-${count}`, theirs: `theirs-${count}`, actor });
  });
}
