import type { Target, TargetRef } from '../../domain/jobs/targets.ts';
import type { Knex } from '../core/knex.ts';

const SOURCES: Readonly<Record<TargetRef['kind'], string>> = {
  site: 'SELECT name, tenant_id AS "tenantId", id AS "siteId" FROM sites WHERE id = ?',
  device:
    'SELECT name, tenant_id AS "tenantId", own_site_of_device(id) AS "siteId" FROM devices WHERE id = ?',
};

/** A record that jobs can be about, as it is now, whatever its tenant. */
export async function findTarget(db: Knex, ref: TargetRef): Promise<Target | undefined> {
  type Row = Pick<Target, 'name' | 'tenantId' | 'siteId'>;
  const { rows } = await db.raw<{ rows: Row[] }>(SOURCES[ref.kind], [ref.id]);
  return rows[0] && { ...ref, ...rows[0] };
}
