import type { Knex } from '../core/knex.ts';
import { Job } from '../models/Job.ts';

export type RevokedJob = Pick<Job, 'id' | 'tenantId' | 'type' | 'sourceKind' | 'sourceId'>;

/**
 * Of a job: its token is revoked, or the account that it acts for is disabled, as in `findUserAuthState`. A restore may
 * have deleted either.
 */
const IS_REVOKED = `(
  authority->>'tokenId' IS NOT NULL AND NOT EXISTS (
    SELECT FROM tokens t WHERE t.id = authority->>'tokenId' AND t.revoked_at IS NULL)
  OR authority->>'userId' IS NOT NULL AND NOT EXISTS (
    SELECT FROM users u LEFT JOIN providers p ON p.id = u.provider_id
    WHERE u.id = authority->>'userId' AND u.enabled
      AND COALESCE(p.enabled, u.provider_id = 'service')))`;

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
