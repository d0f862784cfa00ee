import { Type, type Static } from 'typebox';
import type { Commit } from '../../../db/core/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { Webhook } from '../../../db/models/Webhook.ts';
import { replayEvents } from '../../../db/events/replay.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { JobFailure, defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import { MAX_REPLAY_EVENTS, REPLAY_JOB_TYPE } from '../../../domain/webhooks/webhooks.ts';
import type { Ids } from '../../../platform/ids.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { counted } from '../../../domain/shared/counted.ts';
import { lastPurgedFor } from '../../events/purgedEvents.ts';
import { webhookAudit } from '../../webhooks/webhookAudit.ts';

const Payload = Type.Object(
  {
    webhookId: Type.String(),
    afterSequence: Type.Integer({ minimum: 0 }),
    upToSequence: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
);
type Payload = Static<typeof Payload>;

export type ReplayDeps = { db: Knex; commit: Commit; ids: Ids };

/** How many events one commit replays. */
const BATCH = 200;

/**
 * The job type that queues deliveries of past events to a webhook, in the order of the log. A
 * second attempt skips what the first one queued.
 */
export const createReplayJobType = ({ db, commit, ids }: ReplayDeps): JobType<Payload> => {
  /** Queues deliveries of up to `limit` events after the sequence `after`, in one commit. */
  const replayBatch = (
    payload: Payload,
    after: number,
    limit: number,
    tenantId: string,
    jobId: string,
  ) =>
    commit(systemCaller(tenantId, jobWorkflowId(jobId)), async (work) => {
      const trx = await work.trx();
      // A commit that disables the webhook waits, and then cancels these deliveries.
      const webhook = await Webhook.query(trx)
        .findById(payload.webhookId)
        .forShare()
        .throwIfNotFound();
      if (!webhook.enabled)
        throw new JobFailure('webhook_disabled', 'The webhook is disabled or deleted', {
          retryable: false,
        });
      const batch = await replayEvents(trx, {
        webhook,
        jobId,
        after,
        upTo: payload.upToSequence,
        limit,
        ids,
      });
      // Read after the events: what is purged in between must not be missed.
      const purged = await lastPurgedFor(trx, webhook.tenantId);
      if (after < purged)
        throw new JobFailure(
          'events_purged',
          `Events up to the sequence ${purged} are purged: they cannot be sent`,
          { retryable: false },
        );
      work.audit('webhook.replay', webhookAudit.subject(webhook), {
        after: {
          jobId,
          afterSequence: after,
          upToSequence: batch.sequence,
          deliveries: batch.queued,
        },
      });
      return batch;
    });

  return defineJobType<Payload>({
    name: REPLAY_JOB_TYPE,
    summary: 'Sends events of the log to a webhook again',
    payload: Payload,
    permission: 'webhook:write',
    createdOnlyBy: 'POST /api/webhooks/{id}/replay',
    lane: 'activity',
    timeoutMs: 600_000,
    run: async (payload, { jobId, signal, log, progress }) => {
      const { tenantId } = await Webhook.query(db).findById(payload.webhookId).throwIfNotFound();
      let after = payload.afterSequence;
      let deliveries = 0;
      let examined = 0;
      let more = true;
      while (more && examined < MAX_REPLAY_EVENTS) {
        signal.throwIfAborted();
        const limit = Math.min(BATCH, MAX_REPLAY_EVENTS - examined);
        const batch = await replayBatch(payload, after, limit, tenantId, jobId);
        after = batch.sequence;
        deliveries += batch.deliveries;
        examined += limit;
        more = batch.more;
        progress(
          (100 * (after - payload.afterSequence)) /
            Math.max(1, payload.upToSequence - payload.afterSequence),
          `up to sequence ${after}`,
        );
      }
      log('info', `Queued ${counted(deliveries, 'delivery')}`, {
        lastSequence: after,
      });
      return { deliveries, lastSequence: after, complete: !more };
    },
  });
};
