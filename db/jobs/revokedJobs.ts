import type { Knex } from '../core/knex.ts';
import { Job } from '../models/Job.ts';

export type RevokedJob = Pick<Job, 'id' | 'tenantId' | 'type' | 'sourceKind' | 'sourceId'>;

/** Of a job: its token is revoked, or the account that it acts for is disabled. */
const IS_REVOKED = `(
  EXISTS (SELECT FROM tokens t WHERE t.id = authority->>'tokenId' AND t.revoked_at IS NOT NULL)
  OR EXISTS (SELECT FROM users u WHERE u.id = authority->>'userId' AND NOT u.enabled))`;

/** Running jobs after this id whose authority has ended, and whose cancellation was not requested. */
export async function findRevokedJobs(
  db: Knex,
  { afterId, limit }: { afterId: string; limit: number },
): Promise<RevokedJob[]> {
  return Job.query(db)
    .select('id', 'tenant_id', 'type', 'source_kind', 'source_id')
    .where({ status: 'running' })
    .whereNull('cancel_requested_at')
    .where('id', '>', afterId)
    .whereRaw(IS_REVOKED)
    .orderBy('id')
    .limit(limit);
}
