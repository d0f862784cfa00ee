import { useMutation, useQueryClient, type QueryKey } from '@tanstack/react-query';
import { useState } from 'react';
import { useStarted } from './useStarted.ts';

type Options = {
  /** Deletes the version that the header names. */
  remove: (header: { 'If-Match': string }) => Promise<unknown>;
  onDeleted: () => Promise<void> | void;
  /** What is read again if it could not be deleted. */
  queryKey: QueryKey;
};

/**
 * Deletes a record after a question about it, which shows it as `started`: the record as it was when the
 * question was asked. After a 412 the question goes on with the record as it is read then.
 */
export function useDeletion<R extends { version: number }>(
  record: R,
  { remove, onDeleted, queryKey }: Options,
) {
  const client = useQueryClient();
  const { started, restart, watch } = useStarted(record);
  const [isOpen, setOpen] = useState(false);
  const { mutate, reset, isPending, error } = useMutation({
    mutationFn: () => watch(remove({ 'If-Match': `"${started.version}"` })),
    onSuccess: onDeleted,
    onError: () => void client.invalidateQueries({ queryKey }),
  });
  return {
    started,
    ask: () => {
      restart();
      setOpen(true);
    },
    dialog: {
      opened: isOpen,
      onClose: () => {
        setOpen(false);
        reset();
      },
      danger: true,
      onConfirm: () => mutate(),
      busy: isPending,
      problem: error,
    },
  };
}
