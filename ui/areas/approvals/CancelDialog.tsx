import { Textarea } from '@mantine/core';
import { useState } from 'react';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import { useActions } from './useActions.ts';

type Props = { id: string; request: ApprovalRequest; opened: boolean; onClose: () => void };

/** Cancels a request, or an approved one whose job has not started. */
export function CancelDialog({ id, request: { status, contentHash }, opened, onClose }: Props) {
  const [text, setText] = useState('');
  const { mutate, isPending, error } = useActions(id);
  const isPendingRequest = status === 'pending';
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={isPendingRequest ? 'Cancel the request' : 'Cancel the execution'}
      confirm={isPendingRequest ? 'Cancel the request' : 'Cancel the execution'}
      busy={isPending}
      problem={error}
      danger
      onConfirm={() => mutate({ verb: 'cancel', text, contentHash }, { onSuccess: onClose })}
    >
      <p>
        {isPendingRequest
          ? 'Nobody can decide on it then, and nothing runs.'
          : 'The request is approved, and its job has not started. It will not start.'}
      </p>
      <Textarea
        label="Comment (optional)"
        value={text}
        maxLength={2_000}
        autosize
        minRows={2}
        maxRows={6}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </ConfirmDialog>
  );
}
