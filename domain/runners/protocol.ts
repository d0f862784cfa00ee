import type { JobStatus } from '../jobs/jobs.ts';
import type { RemoteTypeDefinition } from './definition.ts';
import type { TypeState } from './records.ts';

/*
 * What runners and the API send to each other. Of answers that a presenter makes, `runner/protocol/api.ts`
 * declares what a runner reads.
 */

/** The API accepts the end of an attempt this long after its limit; a runner reports it within that time. */
export const END_MARGIN_MS = 60_000;

/** A type as a runner has it. `digest` identifies its declaration and its code. */
export type AnnouncedType = { digest: string; definition: RemoteTypeDefinition };

/** What a runner process says about itself. */
export type Announcement = {
  runnerId: string;
  name: string;
  version: string;
  slots: number;
  pool: string;
  types: readonly AnnouncedType[];
  /** By default true: a runner that takes no jobs, because it does not reach Temporal, says so. */
  reachesTemporal?: boolean;
};

/** What a runner process says regularly. */
export type AliveReport = Pick<Announcement, 'runnerId' | 'pool' | 'reachesTemporal'>;

/**
 * Whether jobs of a type come to the runner. `waiting`: a user has to accept the type, or what has
 * changed of it. `refused`: it can never be accepted; the reason says why.
 */
export type AnnouncedState = {
  name: string;
  digest: string;
  state: TypeState | 'refused';
  reason?: string;
};

/**
 * What a runner asks to begin: which process asks, for which run, with which version of the type; a runner
 * that does not have the type names none, so that the job does not keep a slot of the pool. `attemptToken`
 * is the token of the attempt, which the runner has made for this request; the same request gets the same
 * attempt. `unanswered`: SHA-256, in hexadecimal digits, of the tokens of requests
 * that were not answered: the attempt that one of these may have started has reached no runner.
 */
export type BeginRequest = {
  runnerId: string;
  workflowRunId: string;
  digest?: string | undefined;
  attemptToken?: string;
  unanswered?: readonly string[];
};

/** Why no attempt begins. */
export type NoAttempt =
  /** There is nothing to do any more. */
  | { outcome: 'ended' }
  /** Not now, or not by this runner. */
  | { outcome: 'wait'; code: string; retryInMs: number }
  /** The job fails, or has to. */
  | { outcome: 'failed'; code: string };

/**
 * `have`: the number of lines that were received. `cancel`: the work is to be stopped. `leaseMs`: the
 * attempt is lost after so long without another report.
 */
export type LinesAnswer = {
  have: number;
  cancel: boolean;
  leaseMs: number;
  remainingLines: number;
};

/** How an attempt has ended, as its runner says. */
export type EndRequest = (
  | { result: object }
  | { failure: { code: string; message: string; retryable?: boolean; retryAfterSeconds?: number } }
  | { cancelled: true }
) & {
  /** Lines that the runner has dropped: the log was full, or the API was not reached for too long. */
  droppedLines?: number;
};

/** What follows. `retryInMs`: when the next attempt is due; null if there is none. */
export type EndAnswer = {
  status: JobStatus | 'retrying';
  code: string | null;
  retryInMs: number | null;
};
