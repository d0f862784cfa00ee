import type { Knex } from '../../db/core/knex.ts';
import type { Job } from '../../db/models/Job.ts';
import { countConcurrent, countOlder, releaseSlot } from '../../db/runners/attempts.ts';
import type { RemoteJobType } from '../../domain/jobs/jobType.ts';
import { askAgain, type BeginAnswer } from './beginAnswer.ts';

/** Jobs that wait for others of their type ask again after so long for each older one. */
const PER_OLDER_JOB_MS = 1_000;
const MAX_OLDER = 60;

/** What the attempts of a type count together under, if they are limited. */
export function concurrencyKey(
  { name, definition: { concurrency } }: RemoteJobType,
  { tenantId, targetSiteId, targetDeviceId }: Job,
): string | null {
  if (!concurrency) return null;
  if ((concurrency.per ?? 'type') === 'type') return name;
  const target = targetDeviceId ?? targetSiteId;
  return concurrency.per === 'target' && target !== null
    ? `${name}/${target}`
    : `${name}/${tenantId}`;
}

/**
 * The answer for a job that must wait for others of its type, or fails since they run. One that waits
 * releases its slot, but for one whose attempt has started.
 */
export async function checkConcurrency(
  trx: Knex,
  job: Job,
  type: RemoteJobType,
  { keepsSlot }: { keepsSlot: boolean },
): Promise<BeginAnswer | undefined> {
  const key = concurrencyKey(type, job);
  const { concurrency } = type.definition;
  if (key === null || !concurrency) return undefined;
  if ((await countConcurrent(trx, key, job.id)) < concurrency.limit) return undefined;
  if (concurrency.whenFull === 'refuse') return { outcome: 'failed', code: 'concurrency_limit' };
  if (!keepsSlot) await releaseSlot(trx, job.id);
  const older = await countOlder(trx, job, MAX_OLDER);
  return askAgain('concurrency', Math.max(older / concurrency.limit, 1) * PER_OLDER_JOB_MS);
}
