import type { JobType } from '../../domain/jobs/jobType.ts';
import type { RunnerTypeView } from '../../services/runners/types.ts';
import type { JobTypeRecord } from './typeSchemas.ts';

/** A job type, as a caller with this check of creating jobs sees it; of one of runners, with its record. */
export const typeView = (
  type: JobType,
  mayCreate: (type: JobType) => boolean,
  found?: Pick<RunnerTypeView, 'record' | 'runners'>,
): JobTypeRecord => ({
  name: type.name,
  summary: type.summary,
  payloadSchema: type.payload,
  resultSchema: (type.lane === 'remote' ? type.definition.result : undefined) ?? null,
  permission: type.permission,
  targets: type.targets,
  access: type.access,
  mayRun:
    type.createdOnlyBy === null &&
    (found === undefined || found.record.state === 'accepted') &&
    mayCreate(type),
  createdOnlyBy: type.createdOnlyBy,
  lane: type.lane,
  retryPolicy: type.retry,
  timeoutMs: type.timeoutMs,
  origin: type.lane === 'remote' ? 'runner' : 'holdfast',
  state: found?.record.state ?? 'accepted',
  pools: type.lane === 'remote' ? [type.pool] : [],
  runners: found?.runners ?? null,
  digest: found?.record.digest ?? null,
  concurrency: concurrencyOf(type),
  acceptedBy: found?.record.acceptedBy ?? null,
  acceptedAt: found?.record.acceptedAt?.toISOString() ?? null,
  version: found?.record.version ?? null,
});

function concurrencyOf(type: JobType): JobTypeRecord['concurrency'] {
  const concurrency = type.lane === 'remote' ? type.definition.concurrency : undefined;
  return concurrency ? { per: 'type', whenFull: 'wait', ...concurrency } : null;
}
