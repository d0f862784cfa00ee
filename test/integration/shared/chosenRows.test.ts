import { beforeAll, expect, test } from '@jest/globals';
import { claimApprovalsToReconcile } from '../../../db/approvals/approvals.ts';
import { claimUnfinishedBackups } from '../../../db/backups/unfinished.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { claimUnfinished } from '../../../db/jobs/jobs.ts';
import { grantSlots } from '../../../db/jobs/slots.ts';
import { claimUnchecked } from '../../../db/schedules/schedules.ts';
import { endExpiredLeases } from '../../../db/webhooks/firstAttempts.ts';
import { withDatabase } from '../../support/database.ts';

/**
 * Statements that change a limited number of rows, on tables that had one row when they were analysed: PostgreSQL then
 * prefers plans that would run a subquery again for each row.
 */
let db: Knex;
withDatabase((opened) => (db = opened));

const now = new Date();
const before = new Date(now.getTime() - 60_000);
const LIMIT = 2;

const claim = { before: now, now, limit: LIMIT };

const TABLES: Record<string, object> = {
  jobs: {
    ...{ type: 'core.echo', tenant_id: 'acme', pool: '', slot: 'waiting', status: 'queued' },
    ...{ source_kind: 'api', checked_at: before, retry_policy: { maxAttempts: 1 } },
  },
  schedules: { tenant_id: 'acme', checked_at: before },
  backups: { status: 'queued', check_at: before },
  approvals: { status: 'pending', tenant_id: 'acme', check_at: before, expires_at: now },
  deliveries: {
    ...{ status: 'pending', tenant_id: 'acme', in_flight: true, leased_until: before },
    ...{ job_id: 'job_0' },
  },
};

/** Needs only the columns that the statements read. */
const RELAX = `
  SET session_replication_role = replica;
  DO $$ DECLARE c record; BEGIN
    FOR c IN SELECT attrelid::regclass AS t, attname FROM pg_attribute
      WHERE attnotnull AND attnum > 0 AND attrelid = ANY ('{%}'::regclass[]) AND attname <> 'id'
        AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey))
    LOOP EXECUTE format('ALTER TABLE %s ALTER %I DROP NOT NULL', c.t, c.attname); END LOOP;
    FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
      WHERE contype = 'c' AND conrelid = ANY ('{%}'::regclass[])
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP;
  END $$`;

beforeAll(async () => {
  await db.raw(RELAX.replaceAll('{%}', `{${Object.keys(TABLES).join(',')}}`));
  for (const [table, row] of Object.entries(TABLES)) {
    const insert = (from: number, to: number) =>
      db(table).insert(
        Array.from({ length: to - from }, (_, n) => ({
          ...row,
          id: String(from + n).padStart(6, '0'),
        })),
      );
    await insert(0, 500);
    await db(table).where('id', '<', '000499').del();
    await db.raw(`VACUUM ANALYZE ${table}`);
    await insert(0, 30);
  }
});

test.each<[string, () => Promise<readonly unknown[]>]>([
  [
    'grants of slots',
    () => grantSlots(db, '', new Map([['acme', LIMIT]]), { names: ['core.echo'], digests: null }),
  ],
  ['checks of jobs', () => claimUnfinished(db, claim)],
  ['checks of schedules', () => claimUnchecked(db, claim)],
  ['checks of backups', () => claimUnfinishedBackups(db, claim)],
  [
    'checks of requests',
    () =>
      claimApprovalsToReconcile(db, {
        ...{ now, limit: LIMIT },
        ...{ nextPendingCheckAt: now, nextCheckAt: now },
      }),
  ],
])('%s are as many as their limit', async (_what, run) => {
  expect(await run()).toHaveLength(LIMIT);
});

test('ends of leases are as many as their limit', async () => {
  await endExpiredLeases(db, LIMIT);
  const [row] = await db('deliveries').where({ in_flight: false }).count();
  expect(row).toEqual({ count: LIMIT });
});
