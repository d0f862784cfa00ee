import { expect, test } from '@jest/globals';
import type { RemoteAttempt } from '../../../db/runners/attempts.ts';
import { DEFAULT_RETRY } from '../../../domain/jobs/retry.ts';
import { hashToken } from '../../../services/auth/hashToken.ts';
import { decideBegin } from '../../../services/runners/decideBegin.ts';

const REQUEST = { attemptToken: 'mine', unanswered: [] };

const jobOf = (attempts: number, cancelRequestedAt: Date | null = null) => ({
  attempts,
  interruptions: 0,
  retryPolicy: { ...DEFAULT_RETRY, maxAttempts: 2 },
  cancelRequestedAt,
});

/** The first attempt, which another runner makes, with a lease. */
const attemptOf = (changes: Partial<RemoteAttempt> = {}): RemoteAttempt => ({
  jobId: 'job_1',
  tenantId: 'red',
  attempt: 1,
  runId: 'run_1',
  runnerId: 'run_a',
  tokenId: 'tok_1',
  tokenHash: hashToken('other'),
  digest: 'd',
  leaseMs: 30_000,
  leftMs: 10_000,
  linesReceived: 0,
  answer: null,
  dueInMs: 0,
  lostNoted: false,
  isCurrent: true,
  cancelRequested: false,
  logCount: 0,
  ...changes,
});

const OWN = { tokenHash: hashToken('mine') };
const ENDED = { answer: {}, leftMs: 0, isCurrent: false };
const WITHOUT_LEASE = { leftMs: 0 };

const refused = (outcome: string, code: string) => ({
  begins: false,
  answer: expect.objectContaining({ outcome, code }),
});
const begins = { begins: true, continues: false, isLeased: false, lost: null };

test('the first attempt begins', () => {
  expect(decideBegin(jobOf(0), undefined, REQUEST)).toEqual(begins);
});

test.each([
  ['runs with another runner', {}, refused('wait', 'leased')],
  ['has lost its runner', WITHOUT_LEASE, { ...begins, lost: 1 }],
  ['has lost its runner, as the log says', { ...WITHOUT_LEASE, lostNoted: true }, begins],
  ['has ended', ENDED, begins],
  [
    'has ended, while the next one is not due',
    { ...ENDED, dueInMs: 5_000 },
    {
      begins: false,
      answer: { outcome: 'wait', code: 'retry_later', retryInMs: 5_200 },
      releasesSlot: true,
    },
  ],
  ['was started by the request', OWN, { ...begins, continues: true, isLeased: true }],
  [
    'was started by the request and has no lease',
    { ...OWN, ...WITHOUT_LEASE },
    { ...begins, continues: true },
  ],
  [
    'was started by the request and has ended',
    { ...OWN, ...ENDED },
    refused('wait', 'attempt_lost'),
  ],
  ['has reported lines', { ...OWN, linesReceived: 1 }, refused('wait', 'leased')],
])('the next attempt, when the last one %s', (_, attempt, decision) => {
  expect(decideBegin(jobOf(1), attemptOf(attempt), REQUEST)).toEqual(decision);
});

test('an attempt that an unanswered request has started continues', () => {
  const request = { attemptToken: 'new', unanswered: [OWN.tokenHash.toString('hex')] };
  expect(decideBegin(jobOf(1), attemptOf(OWN), request)).toEqual({
    ...begins,
    continues: true,
    isLeased: true,
  });
});

test('after the last attempt that the policy allows, none begins, but the last one continues', () => {
  const last = attemptOf({ attempt: 2, ...WITHOUT_LEASE });
  expect(decideBegin(jobOf(2), last, REQUEST)).toEqual({ begins: false });
  expect(decideBegin(jobOf(2), { ...last, ...OWN }, REQUEST)).toEqual({
    ...begins,
    continues: true,
  });
});

test('a job that is to be cancelled ends when no runner has a lease', () => {
  const cancelled = jobOf(1, new Date());
  expect(decideBegin(cancelled, attemptOf(), REQUEST)).toEqual(refused('wait', 'leased'));
  expect(decideBegin(cancelled, attemptOf(WITHOUT_LEASE), REQUEST)).toEqual(
    refused('failed', 'cancelled'),
  );
});
