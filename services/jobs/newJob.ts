import type { Authority, Caller } from '../../domain/shared/caller.ts';
import type { JobSource } from '../../domain/jobs/jobs.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import { withPolicy, type RetryPolicy } from '../../domain/jobs/retry.ts';
import { targetColumns, type Target } from '../../domain/jobs/targets.ts';
import { currentTrace } from '../../platform/tracing.ts';
import { authorityOf } from '../access/rights.ts';

const API_SOURCE: JobSource = { kind: 'api', id: null };

/**
 * The origin of a job. `authority` is the principal that the job acts for, if not the caller.
 * `typeDigest`: only runners with this version of the type may run it.
 */
export type JobOrigin = {
  source?: JobSource;
  retryOf?: string;
  authority?: Authority;
  typeDigest?: string | null;
};

/**
 * A job to create, at the tenant of its caller, which is that of its target. Fields that `retryPolicy`
 * omits come from the job type.
 */
export type NewJob = JobOrigin & {
  type: JobType;
  payload: Record<string, unknown>;
  target?: Target | null;
  caller: Caller;
  createdBy?: string | undefined;
  retryPolicy?: Partial<RetryPolicy> | undefined;
};

/** The row of a new job. */
export function newJobRow(
  { type, payload, target = null, caller, source = API_SOURCE, ...options }: NewJob,
  { id, now }: { id: string; now: Date },
) {
  const { targetSiteId, targetDeviceId } = targetColumns(target);
  return {
    id,
    type: type.name,
    tenantId: caller.tenantId,
    targetSiteId,
    targetDeviceId,
    siteId: targetSiteId,
    deviceId: targetDeviceId,
    status: 'queued' as const,
    payload,
    retryPolicy: withPolicy(
      { ...type.retry, ...(!type.isRepeatable(payload) && { maxAttempts: 1 }) },
      options.retryPolicy,
    ),
    result: null,
    error: null,
    progress: null,
    attempts: 0,
    interruptions: 0,
    logCount: 0,
    runId: null,
    workflowId: null,
    leasedUntil: null,
    createdBy: options.createdBy ?? caller.actorId,
    authority: options.authority ?? authorityOf(caller),
    sourceKind: source.kind,
    sourceId: source.id,
    retryOf: options.retryOf ?? null,
    cancelRequestedAt: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    checkedAt: now,
    version: 1,
    slot: null as 'waiting' | null,
    dataPurgedAt: null,
    pool: type.lane === 'remote' ? type.pool : '',
    typeDigest: options.typeDigest ?? null,
    trace: currentTrace() ?? null,
  };
}
