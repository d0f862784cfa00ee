import type { ApprovalData } from '../../domain/approvals/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import type { ApprovalChecks, Blocker } from './checks.ts';

export const NOT_EVALUATED = 'not_evaluated';
const notEvaluated: Blocker = {
  execution: 'failed',
  error: {
    code: NOT_EVALUATED,
    message: 'The request was not checked, because too many checks are running; read it again',
  },
};

/** An evaluation that runs, and the requests that wait for it. */
type Evaluation = {
  blocker: Promise<Blocker | null>;
  readers: Set<AbortSignal>;
  ending: AbortController;
};

type Deps = { checks: Pick<ApprovalChecks, 'findBlocker'>; log: Log };

/** Evaluates requests for their readers. The slots of questions bound how many of them run. */
export function createEvaluations({ checks, log }: Deps) {
  const evaluations = new Map<string, Evaluation>();

  function start(caller: Caller, approval: ApprovalData): Evaluation {
    const ending = new AbortController();
    const blocker = checks
      .findBlocker(approval, { holder: caller, signal: ending.signal })
      .catch((error: unknown) => {
        if (!ending.signal.aborted)
          log.warn(
            { err: error, approvalId: approval.id },
            'an approval request could not be evaluated for its reader',
          );
        return notEvaluated;
      })
      .finally(() => {
        if (evaluations.get(approval.id) === evaluation) evaluations.delete(approval.id);
      });
    const evaluation = { blocker, readers: new Set<AbortSignal>(), ending };
    evaluations.set(approval.id, evaluation);
    return evaluation;
  }

  return {
    /**
     * Why a request cannot be executed now; null if it can. Concurrent readers of one request share
     * an evaluation. It ends when all of them have left; who comes then starts another one. Error:
     * the reason of a `signal` that has aborted.
     */
    async findBlocker(
      caller: Caller,
      approval: ApprovalData,
      signal: AbortSignal,
    ): Promise<Blocker | null> {
      signal.throwIfAborted();
      const known = evaluations.get(approval.id);
      const { blocker, readers, ending } =
        known && !known.ending.signal.aborted ? known : start(caller, approval);
      const leave = () => {
        readers.delete(signal);
        if (readers.size === 0) ending.abort(signal.reason);
      };
      readers.add(signal);
      signal.addEventListener('abort', leave, { once: true });
      return blocker.finally(() => signal.removeEventListener('abort', leave));
    },
  };
}
