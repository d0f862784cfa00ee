import type { Knex } from './knex.ts';

/**
 * Every advisory lock of Holdfast. PostgreSQL identifies one by a 64-bit number and knows nothing of
 * its purpose, so two purposes with one number would block each other. Add new locks here only.
 */
export const LOCKS = {
  /** One process migrates the schema. */
  migration: 7_203_114,
  /** One process seals audit entries. */
  auditSealing: 7_203_115,
  /** One process creates jobs for deliveries, so that slots are counted correctly. */
  deliveryQueue: 7_203_116,
  /** One restore, or the clean-up after one, runs at a time. */
  restore: 7_203_117,
  /** One process grants slots to jobs, so that they are counted correctly. */
  jobSlots: 7_203_118,
  /** Changes of regions and locations are checked for cycles in turns; taken by `reject_cycle` of the schema. */
  trees: 7_203_119,
  /** One process measures the state of the installation. */
  installationState: 7_203_171,
} as const;

/** Locks with one number per name: the number is the hash of the prefix and the name. */
export const LOCK_PREFIXES = {
  /** The address space of a VRF; taken, as the next two are, by `prepare_to_write` of the schema. */
  vrf: 'inventory:vrf:',
  /** The definitions of custom fields of a tenant. */
  customFields: 'inventory:custom-fields:',
  /** Writers for the platform take turns before they lock what tenants share; no tenant takes it. */
  platformTurn: 'inventory:turn:',
  /**
   * A quota of a tenant, `<tenant>/<quota>`: near its limit, taken by `check_quota` of the schema, and
   * by those who need to know how much of it is used.
   */
  quota: 'quota:',
  /**
   * The records of a tenant: shared by transactions that delete some (`share_hold_lock` of the schema),
   * taken alone to create a legal hold.
   */
  legalHold: 'legal-hold:',
  /** The purge of a tenant: concurrent purges would count the same rows. */
  purge: 'purge:',
  /** The attempts of remote jobs that count together, so that a limit is kept. */
  concurrency: 'concurrency:',
  /** The views of a tenant, while their names and number are checked. */
  views: 'views:',
  /**
   * What is created in a tenant outside its inventory, shared (`share_tenant` of the schema); taken alone to
   * delete the tenant.
   */
  tenant: 'tenant:',
  /** The ends of a schedule's jobs, which start what is buffered behind them. */
  scheduleJobs: 'schedule-jobs:',
  /** The staging schema of a restore. */
  staging: 'staging:',
} as const;

/** SQL for the number of a named lock; `name` is an SQL expression of type text. */
export const lockKeySql = (lock: keyof typeof LOCK_PREFIXES, name: string): string =>
  `hashtextextended('${LOCK_PREFIXES[lock]}' || ${name}, 0)`;

/** Takes a lock until the transaction ends; waits while another transaction holds it. */
export const lockUntilCommit = async (trx: Knex, lock: keyof typeof LOCKS): Promise<void> =>
  void (await trx.raw('SELECT pg_advisory_xact_lock(?)', [LOCKS[lock]]));

/** Takes a lock until the transaction ends, or returns false when another transaction holds it. */
export async function tryLockUntilCommit(trx: Knex, lock: keyof typeof LOCKS): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { acquired: boolean }[] }>(
    'SELECT pg_try_advisory_xact_lock(?) AS acquired',
    [LOCKS[lock]],
  );
  return rows[0]?.acquired === true;
}

/** As `tryLockUntilCommit`, but several transactions may hold the lock so at the same time. */
export async function tryShareUntilCommit(trx: Knex, lock: keyof typeof LOCKS): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { acquired: boolean }[] }>(
    'SELECT pg_try_advisory_xact_lock_shared(?) AS acquired',
    [LOCKS[lock]],
  );
  return rows[0]?.acquired === true;
}
