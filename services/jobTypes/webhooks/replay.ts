import { Type, type Static } from 'typebox';
import type { Commit } from '../../../db/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { Webhook } from '../../../db/models/Webhook.ts';
import { replayEvents } from '../../../db/replay.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { JobFailure, jobType, type JobType } from '../../../domain/jobType.ts';
import { MAX_REPLAY, REPLAY } from '../../../domain/webhooks/webhooks.ts';
import type { Ids } from '../../../platform/ids.ts';
import { jobWorkflowId, type DispatchTask } from '../../../temporal/contracts.ts';
import { webhookSubject } from '../../webhookTrail.ts';

const Payload = Type.Object(
  {
    webhookId: Type.String(),
    afterSequence: Type.Integer({ minimum: 0 }),
    upToSequence: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
);
type Payload = Static<typeof Payload>;

export type ReplayDeps = { db: Knex; commit: Commit<DispatchTask>; ids: Ids };

/** Events that one commit makes owed again. */
const BATCH = 200;

/** Makes events of the log owed to a webhook once more, in their order. Begun again, it goes on where it was. */
export const webhookReplay = ({ db, commit, ids }: ReplayDeps): JobType<Payload> => {
  /** The next events, in a commit of its own. */
  const step = (payload: Payload, after: number, limit: number, tenantId: string, jobId: string) =>
    commit(systemCaller(tenantId, jobWorkflowId(jobId)), async (work) => {
      const trx = await work.trx();
      // Whoever disables the webhook waits, and finds these deliveries pending.
      const webhook = await Webhook.query(trx)
        .findById(payload.webhookId)
        .forShare()
        .throwIfNotFound();
      if (!webhook.enabled)
        throw new JobFailure('webhook_disabled', 'The webhook is disabled or deleted', {
          retryable: false,
        });
      const done = await replayEvents(trx, {
        webhook,
        jobId,
        after,
        upTo: payload.upToSequence,
        limit,
        now: work.now,
        ids,
      });
      work.audit('webhook.replay', webhookSubject(webhook), {
        after: { jobId, afterSequence: after, upToSequence: done.sequence, deliveries: done.owed },
      });
      return done;
    });

  return jobType<Payload>({
    name: REPLAY,
    summary: 'Sends events of the log to a webhook again',
    payload: Payload,
    permission: 'webhook:write',
    onlyThrough: 'POST /api/webhooks/{id}/replay',
    lane: 'activity',
    timeoutMs: 600_000,
    run: async (payload, { jobId, signal, log, progress }) => {
      const { tenantId } = await Webhook.query(db).findById(payload.webhookId).throwIfNotFound();
      let [after, deliveries, looked, more] = [payload.afterSequence, 0, 0, true];
      while (more && looked < MAX_REPLAY) {
        signal.throwIfAborted();
        const limit = Math.min(BATCH, MAX_REPLAY - looked);
        const done = await step(payload, after, limit, tenantId, jobId);
        [after, deliveries, looked, more] = [
          done.sequence,
          deliveries + done.owed,
          looked + limit,
          done.more,
        ];
        progress(
          (100 * (after - payload.afterSequence)) /
            Math.max(1, payload.upToSequence - payload.afterSequence),
          `up to sequence ${after}`,
        );
      }
      log('info', `${deliveries} deliveries are to be made`, { lastSequence: after });
      return { deliveries, lastSequence: after, complete: !more };
    },
  });
};
