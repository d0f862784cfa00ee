import { useMutation } from '@tanstack/react-query';
import { useRef } from 'react';
import { useIdempotencyKeys, type KeyHeader } from './idempotency.ts';

type Options<Content, Made> = {
  send: (content: Content, header: KeyHeader) => Promise<Made>;
  /** Leads to what was made. */
  onMade: (made: Made) => void;
};

/**
 * Creates one record from a form and leads to it. A repeat after an outage has the same idempotency key.
 * The form stays busy after the answer: the next page may have to be loaded first, and another click in
 * that time would create another record.
 */
export function useCreation<Content, Made>({ send, onMade }: Options<Content, Made>) {
  const keys = useIdempotencyKeys();
  const isBusy = useRef(false);
  const mutation = useMutation({
    mutationFn: (content: Content) => keys.once(content, (header) => send(content, header)),
    onSuccess: onMade,
    onError: () => {
      isBusy.current = false;
    },
  });
  const { mutate, reset, isPending, isSuccess, error } = mutation;
  return {
    create: (content: Content): void => {
      if (isBusy.current) return;
      isBusy.current = true;
      mutate(content);
    },
    isBusy: isPending || isSuccess,
    error,
    /** Forgets why it failed. */
    reset,
  };
}
