import type { Knex } from '../../db/core/knex.ts';
import { lockRemoteAttempt, type RemoteAttempt } from '../../db/runners/attempts.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { hashToken } from '../auth/hashToken.ts';
import type { RunnerIdentity } from './identity.ts';

export const attemptLost = () =>
  new AppError('attempt_lost', 'This attempt no longer counts: another one may have started.');

/**
 * The attempt with a token, which may have ended, locked until the transaction ends. Error:
 * `attempt_lost`, also if a runner with another token has started it.
 */
export async function requireOwn(
  trx: Knex,
  runner: RunnerIdentity,
  jobId: string,
  attemptToken: string,
): Promise<RemoteAttempt> {
  const attempt = await lockRemoteAttempt(trx, jobId, hashToken(attemptToken));
  if (attempt?.tokenId !== runner.tokenId) throw attemptLost();
  return attempt;
}

/** The same for an attempt that runs. Error: `attempt_lost`. */
export async function requireCurrent(
  trx: Knex,
  runner: RunnerIdentity,
  jobId: string,
  attemptToken: string,
): Promise<RemoteAttempt> {
  const attempt = await requireOwn(trx, runner, jobId, attemptToken);
  if (!attempt.isCurrent || attempt.answer !== null) throw attemptLost();
  return attempt;
}
