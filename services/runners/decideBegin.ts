import type { Job } from '../../db/models/Job.ts';
import type { RemoteAttempt } from '../../db/runners/attempts.ts';
import { countedAttempts } from '../../domain/jobs/retry.ts';
import type { BeginRequest } from '../../domain/runners/protocol.ts';
import { hashToken } from '../auth/hashToken.ts';
import { askAgain, type BeginAnswer } from './beginAnswer.ts';

/** The tokens by which a request says which attempts it may have started. */
export type RequestTokens = Required<Pick<BeginRequest, 'attemptToken' | 'unanswered'>>;

/** What happens to a request to begin an attempt, as far as the record of the job says. */
export type BeginDecision =
  /** No attempt begins. Without an answer, the job has no attempt left. */
  | { begins: false; answer?: BeginAnswer; releasesSlot?: boolean }
  | {
      begins: true;
      /** The last attempt continues: this runner has started it, and has not reported anything of it. */
      continues: boolean;
      /** The runner still has the lease of the attempt that continues. */
      isLeased: boolean;
      /** The number of the attempt whose runner was lost, if the log does not say so yet. */
      lost: number | null;
    };

/** A lease is checked again this long after its end. */
const LEASE_END_MARGIN_MS = 200;

/**
 * An activity that Temporal has dropped, as in an outage, does not delay the next attempt: the answer to its end does.
 * The runner asks again this long after the attempt is due.
 */
const DUE_MARGIN_MS = 200;

/** The answer while another runner makes the attempt. */
export const waitForLease = ({ leftMs }: RemoteAttempt): BeginAnswer =>
  askAgain('leased', leftMs + LEASE_END_MARGIN_MS);

/** Which request has started an attempt, if its runner cannot know of it or asks again. */
export function reachOf(
  { tokenHash }: RemoteAttempt,
  { attemptToken, unanswered }: RequestTokens,
): 'this request' | 'an unanswered one' | undefined {
  if (tokenHash.equals(hashToken(attemptToken))) return 'this request';
  return unanswered.includes(tokenHash.toString('hex')) ? 'an unanswered one' : undefined;
}

/** Decides from a job and its last attempt, both locked, whether an attempt begins. */
export function decideBegin(
  job: Pick<Job, 'attempts' | 'interruptions' | 'retryPolicy' | 'cancelRequestedAt'>,
  last: RemoteAttempt | undefined,
  request: RequestTokens,
): BeginDecision {
  const reach = last && reachOf(last, request);
  const running = last?.isCurrent === true && last.answer === null ? last : undefined;
  if (reach === 'this request' && !running)
    return { begins: false, answer: askAgain('attempt_lost', 1_000) };

  const continues = running?.linesReceived === 0 && reach !== undefined;
  const isLeased = running !== undefined && running.leftMs > 0;
  if (isLeased)
    return continues
      ? { begins: true, continues, isLeased, lost: null }
      : { begins: false, answer: waitForLease(running) };

  if (job.cancelRequestedAt)
    return { begins: false, answer: { outcome: 'failed', code: 'cancelled' } };
  // An attempt that was the last and is lost ends the job, whatever else of its type runs.
  if (!continues && countedAttempts(job) >= job.retryPolicy.maxAttempts) return { begins: false };
  if (last?.attempt === job.attempts && last.dueInMs > 0) {
    const retryInMs = last.dueInMs + DUE_MARGIN_MS;
    const answer: BeginAnswer = { outcome: 'wait', code: 'retry_later', retryInMs };
    return { begins: false, answer, releasesSlot: true };
  }
  const isLost = running !== undefined && !continues && !running.lostNoted;
  return { begins: true, continues, isLeased, lost: isLost ? running.attempt : null };
}
