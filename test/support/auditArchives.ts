import { randomBytes } from 'node:crypto';
import type { AuditArchive } from '../../db/models/AuditArchive.ts';
import type { TestApp } from './app.ts';

/**
 * Adds entries of one month to the audit log of a tenant, as if they had been written then, and
 * seals them. It refuses a tenant with newer entries: whether those come first in the chain would
 * depend on when the sealer of the application runs.
 */
export async function addOldEntries(
  { deps: { db, ids, auditSealer } }: TestApp,
  tenantId: string,
  month: string,
  count: number,
  subject = { type: 'job', id: 'job_old' },
): Promise<void> {
  const rows = Array.from({ length: count }, (_, i) => {
    const at = new Date(Date.parse(`${month}-01T12:00:00.000Z`) + i * 1_000);
    return {
      id: ids.at('aud', at),
      tenant_id: tenantId,
      actor_id: 'ann',
      via: 'gateway',
      action: 'job.create',
      outcome: 'done',
      subject_type: subject.type,
      subject_id: subject.id,
      before: null,
      // The stored text of JSON is hashed: it keeps its spaces and line ends.
      after: `{"n":  ${i},\n "text": "ü\\u0001 ' \\\\"}`,
      request_id: 'req',
      address: null,
      at,
    };
  });
  const newer = await db('audit_entries')
    .where({ tenant_id: tenantId })
    .where('at', '>', `${month}-28T23:59:59Z`)
    .first();
  if (newer) throw new Error(`The audit log of ${tenantId} has entries after ${month}`);
  await db('audit_entries').insert(rows);
  const unsealed = () => db('audit_entries').where({ tenant_id: tenantId, position: null }).first();
  while (await unsealed()) await auditSealer.seal();
}

/** A row of `audit_archives` with a checkpoint, whose file does not exist. */
export const archiveRow = ({ deps }: TestApp, tenantId: string, changes: object = {}) => ({
  id: deps.ids.next('aar'),
  tenant_id: tenantId,
  job_id: 'job_forged',
  status: 'checkpointed',
  first_position: 1,
  position: 2,
  previous_hash: Buffer.alloc(32),
  hash: randomBytes(32),
  first_at: new Date(),
  last_at: new Date(),
  last_id: 'aud_z',
  store: 'folder',
  archive: 'forged.hfb',
  attempts: 1,
  size_bytes: 1,
  checkpoint_at: new Date(),
  created_at: new Date(),
  updated_at: new Date(),
  ...changes,
});

export const archivesOf = async ({ deps }: TestApp, tenantId: string): Promise<Row[]> =>
  deps.db('audit_archives').where({ tenant_id: tenantId }).orderBy('first_position');

type Row = Pick<AuditArchive, 'id' | 'status' | 'archive' | 'position' | 'hash' | 'attempts'> & {
  first_position: number;
};

/** How many entries of a tenant are in the database up to a position. */
export const countUpTo = async (
  { deps }: TestApp,
  tenantId: string,
  position: number,
): Promise<number> =>
  (
    await deps
      .db('audit_entries')
      .where({ tenant_id: tenantId })
      .where('position', '<=', position)
      .pluck('id')
  ).length;
