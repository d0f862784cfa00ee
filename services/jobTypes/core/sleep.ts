import { setTimeout as sleep } from 'node:timers/promises';
import { Type, type Static } from 'typebox';
import { JobFailure, defineJobType } from '../../../domain/jobs/jobType.ts';
import { HOUR_MS } from '../../../domain/shared/durations.ts';
import { counted } from '../../../domain/shared/counted.ts';

const Payload = Type.Object(
  {
    durationMs: Type.Integer({
      minimum: 0,
      maximum: HOUR_MS,
      description: 'How long to sleep, in milliseconds.',
    }),
    failAttempts: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'Fail this many attempts first, with sleep_failed.',
      }),
    ),
  },
  { additionalProperties: false },
);

/** How often the progress is reported. */
const PROGRESS_STEPS = 20;

/**
 * Sleeps and reports progress: to try cancellation, retries and the loss of a worker. The time
 * counts from the first attempt, so a later attempt sleeps only for the rest.
 */
export const coreSleep = defineJobType<Static<typeof Payload>>({
  name: 'core.sleep',
  summary: 'Sleeps for a while, with progress',
  payload: Payload,
  lane: 'activity',
  timeoutMs: 3_700_000,
  run: async ({ durationMs, failAttempts = 0 }, { attempt, startedAt, signal, log, progress }) => {
    if (attempt <= failAttempts)
      throw new JobFailure('sleep_failed', `Asked to fail ${counted(failAttempts, 'attempt')}`);
    const endsAt = startedAt.getTime() + durationMs;
    for (let leftMs = endsAt - Date.now(); leftMs > 0; leftMs = endsAt - Date.now()) {
      progress(Math.floor(100 * (1 - leftMs / durationMs)), `${Math.ceil(leftMs / 1_000)} s left`);
      await sleep(Math.min(leftMs, Math.max(durationMs / PROGRESS_STEPS, 20)), undefined, {
        signal,
      });
    }
    log('info', 'Slept', { durationMs });
    return { sleptMs: durationMs };
  },
});
