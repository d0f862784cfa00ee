import type { Authority, Caller } from '../../domain/shared/caller.ts';
import type { JobSource } from '../../domain/jobs/jobs.ts';
import type { JobType } from '../../domain/jobType.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import { authorityOf } from '../access/rights.ts';

/** What a caller wants done; what `retryPolicy` leaves out comes from the type. */
export type JobRequest = {
  type: string;
  payload: Record<string, unknown>;
  createdBy?: string;
  retryPolicy?: Partial<RetryPolicy>;
};

const apiSource: JobSource = { kind: 'api', id: null };

/** Where a job comes from; `authority` is whom it acts for, where that is not the caller. */
export type JobOrigin = { source?: JobSource; retryOf?: string; authority?: Authority };

/** A job as it is written first. */
export function newJob(
  type: JobType,
  request: JobRequest,
  caller: Caller,
  from: JobOrigin,
  { id, now }: { id: string; now: Date },
) {
  const source = from.source ?? apiSource;
  return {
    id,
    type: type.name,
    tenantId: caller.tenantId,
    status: 'queued' as const,
    payload: request.payload,
    retryPolicy: { ...type.retry, ...request.retryPolicy },
    result: null,
    error: null,
    progress: null,
    attempts: 0,
    logCount: 0,
    runId: null,
    createdBy: request.createdBy ?? caller.actorId,
    authority: from.authority ?? authorityOf(caller),
    sourceKind: source.kind,
    sourceId: source.id,
    retryOf: from.retryOf ?? null,
    cancelRequestedAt: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    checkedAt: now,
    version: 1,
  };
}
