import type { RemoteJobType } from '../../domain/jobs/jobType.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import type { Target } from '../../domain/jobs/targets.ts';
import type { NoAttempt } from '../../domain/runners/protocol.ts';

/** The answer to a runner that asks to begin an attempt. */
export type BeginAnswer =
  | {
      outcome: 'started';
      job: JobData;
      type: RemoteJobType;
      /** The version of the type that the runner has. */
      digest: string;
      attemptToken: string;
      deadline: Date;
      /** What the job is about, as it is now. */
      target: Target | null;
      /** The values of the secrets that the type asks for, by the names that its code reads. */
      secrets: Record<string, string>;
    }
  | NoAttempt;

/** What cannot begin with this runner, or before someone acts, is asked for again after this time. */
const ASK_LATER_MS = 15_000;

/** The answer that lets a runner ask again after about this time. */
export const askAgain = (code: string, retryInMs = ASK_LATER_MS): BeginAnswer => ({
  outcome: 'wait',
  code,
  retryInMs: Math.round(retryInMs * (0.75 + Math.random() / 2)),
});
