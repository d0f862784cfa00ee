import type { Commit } from '../../db/commit.ts';
import { readHead, sequenceBefore } from '../../db/eventLog.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Job } from '../../db/models/Job.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { REPLAY } from '../../domain/webhooks/webhooks.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { EventRelay } from '../eventRelay.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobStarts } from '../jobStarts.ts';
import type { Webhooks } from '../webhooks.ts';

export type WebhookReplays = ReturnType<typeof createWebhookReplays>;

/** From where events are sent again: after a sequence, or from a time on. */
export type ReplayFrom = { afterSequence: number } | { since: Date };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  webhooks: Webhooks;
  relay: EventRelay;
  jobTypes: JobTypes;
  starts: JobStarts;
};

/** Sending what a webhook has missed. */
export const createWebhookReplays = ({ db, commit, webhooks, relay, jobTypes, starts }: Deps) => ({
  /**
   * Starts a job that sends the events from there up to now to a webhook that has missed them. Errors: `not_found`,
   * `permission_denied`, `webhook_disabled`.
   */
  async replay(caller: Caller, webhookId: string, from: ReplayFrom): Promise<Job> {
    const { id, tenantId, enabled } = await webhooks.findToAct(caller, webhookId, 'webhook:write');
    if (!enabled)
      throw new AppError('webhook_disabled', 'The webhook is disabled; enable it first.');
    await relay.flush();
    const afterSequence =
      'since' in from ? await sequenceBefore(db, from.since) : from.afterSequence;
    const type = jobTypes.get(REPLAY);
    const request = {
      type: REPLAY,
      payload: { webhookId: id, afterSequence, upToSequence: await readHead(db) },
    };
    const at = { ...caller, tenantId };
    return commit(at, (work) => starts.add(work, type, request, at));
  },
});
