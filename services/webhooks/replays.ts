import type { Commit } from '../../db/core/commit.ts';
import { readLastSequence, sequenceBefore } from '../../db/events/eventLog.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { assertKnown, assertNotPurged, lastPurgedFor } from '../events/purgedEvents.ts';
import { REPLAY_JOB_TYPE } from '../../domain/webhooks/webhooks.ts';
import type { EventRelay } from '../events/relay.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { Webhooks } from './webhooks.ts';

export type WebhookReplays = ReturnType<typeof createWebhookReplays>;

/** Where a replay starts: after a sequence, or with the events created at a time or later. */
export type ReplayFrom = { afterSequence: number } | { since: Date };

type Deps = {
  db: Knex;
  commit: Commit;
  webhooks: Webhooks;
  relay: EventRelay;
  jobTypes: JobTypes;
  jobFactory: JobFactory;
};

/** Replays: sending past events to a webhook again. */
export const createWebhookReplays = ({
  db,
  commit,
  webhooks,
  relay,
  jobTypes,
  jobFactory,
}: Deps) => ({
  /**
   * Starts a job that sends the events from there until now to a webhook. Returns the job. Errors:
   * `not_found`, `permission_denied`, `webhook_disabled`, `events_purged`.
   */
  async replay(caller: Caller, webhookId: string, from: ReplayFrom): Promise<JobData> {
    const { id, tenantId, enabled } = await webhooks.findToAct(caller, webhookId, 'webhook:write');
    if (!enabled)
      throw new AppError('webhook_disabled', 'The webhook is disabled; enable it first.');
    await relay.flush();
    const isTime = 'since' in from;
    const afterSequence = isTime ? await sequenceBefore(db, from.since) : from.afterSequence;
    if (!isTime) await assertKnown(db, afterSequence);
    // Only the purge marks know the times of purged events.
    const purged = await lastPurgedFor(db, tenantId, isTime ? from.since : undefined);
    assertNotPurged(isTime ? 0 : afterSequence, purged);
    const type = jobTypes.get(REPLAY_JOB_TYPE);
    const payload = { webhookId: id, afterSequence, upToSequence: await readLastSequence(db) };
    const tenantCaller = { ...caller, tenantId };
    return commit(tenantCaller, (work) => {
      const job = jobFactory.create(work, { type, payload, caller: tenantCaller });
      work.result(job.id);
      return job;
    });
  },
});
