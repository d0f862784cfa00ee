import type { Knex } from '../../db/core/knex.ts';
import { readPosition, readQueues } from '../../db/jobs/queue.ts';
import {
  queuePosition,
  queueRefusal,
  queueRetryAfter,
  type QueueLimits,
  type QueuePosition,
  type TenantQueue,
} from '../../domain/jobs/queue.ts';
import type { JobSummaryData } from '../../domain/jobs/records.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import { counted } from '../../domain/shared/counted.ts';

export type JobQueue = ReturnType<typeof createJobQueue>;

type Deps = { db: Knex; config: { queueLimits: QueueLimits } };

/** The queues are read again after this long; longer if reading them takes long. */
const FRESH_MS = 1_000;
const MAX_READING_SHARE = 0.05;

/** Values that are older are not used: the next caller waits for new ones. */
const MAX_AGE_MS = 5_000;

/** The jobs of callers that wait: how many may, and where a job is. */
export function createJobQueue({ db, config: { queueLimits: limits } }: Deps) {
  let queues = new Map<string, TenantQueue>();
  let readAt = -Infinity;
  let freshMs = FRESH_MS;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    const startedAt = performance.now();
    const found = await useConnectionsForProcess(() => readQueues(db, limits.all + 1));
    // Jobs that are created from now on are counted when they are.
    [queues, readAt] = [found, performance.now()];
    freshMs = Math.max(FRESH_MS, (readAt - startedAt) / MAX_READING_SHARE);
  }

  /** Reads the queues unless that was a moment ago. Values that are not too old are used in the meantime. */
  async function refresh(): Promise<void> {
    const ageMs = performance.now() - readAt;
    if (ageMs < freshMs) return;
    // Without the database the commit fails, with the error that callers get.
    reading ??= read()
      .catch(() => undefined)
      .finally(() => (reading = undefined));
    if (ageMs > Math.max(MAX_AGE_MS, freshMs * 2)) await reading;
  }

  return {
    /**
     * Lets a tenant add a job. Errors: `queue_full`, `server_busy`. Limits are kept approximately: other
     * processes add jobs at the same time.
     */
    async admit(tenantId: string): Promise<void> {
      await refresh();
      const refusal = queueRefusal(queues, tenantId, limits);
      if (!refusal) return;
      const extra = {
        retryAfterSeconds: queueRetryAfter(queues.get(tenantId)?.oldestAt, Date.now()),
      };
      throw refusal === 'tenant'
        ? new AppError(
            'queue_full',
            `The tenant has reached its limit of ${counted(limits.tenant, 'waiting job')}.`,
            extra,
          )
        : new AppError('server_busy', 'Too many jobs wait already.', extra);
    },

    /** Counts a job that was added, and returns its position. */
    added({ tenantId, createdAt }: JobSummaryData): QueuePosition {
      const { queued, oldestAt } = queues.get(tenantId) ?? { queued: 0, oldestAt: createdAt };
      queues.set(tenantId, { queued: queued + 1, oldestAt });
      return queuePosition(queued, oldestAt, Date.now());
    },

    /** The position of a job that waits; null for others. */
    async positionOf(job: JobSummaryData): Promise<QueuePosition | null> {
      if (job.status !== 'queued') return null;
      const { ahead, oldestAt } = await readPosition(db, job);
      return queuePosition(ahead, oldestAt ?? job.createdAt, Date.now());
    },
  };
}
