import { useMutation } from '@tanstack/react-query';
import { useIdempotencyKeys } from '../../app/idempotency.ts';
import { queryClient } from '../../app/queryClient.ts';
import { addComment, decide, isOvertaken, showAnswer, cancelRequest } from './queries.ts';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';

export type Verb = 'approve' | 'reject' | 'comment' | 'cancel';
export type Act = { verb: Verb; text: string; contentHash: string };

const send = (
  id: string,
  { verb, text, contentHash }: Act,
  key: string,
): Promise<ApprovalRequest> => {
  if (verb === 'comment') return addComment(id, text, key);
  if (verb === 'cancel') return cancelRequest(id, text, key);
  return decide(id, { verb, comment: text, contentHash, key });
};

/**
 * Decides, comments and cancels. If another person was faster, the request is read again, so that the
 * page shows what has happened.
 */
export function useActions(id: string, { onSent }: { onSent?: (act: Act) => void } = {}) {
  const keys = useIdempotencyKeys();
  return useMutation({
    mutationFn: (act: Act) => keys.once(act, (header) => send(id, act, header['Idempotency-Key'])),
    onSuccess: (request, act) => {
      showAnswer(request);
      // Also after the page was left.
      onSent?.(act);
    },
    onError: (error) => {
      if (isOvertaken(error)) void queryClient.invalidateQueries({ queryKey: ['approvals'] });
    },
  });
}
