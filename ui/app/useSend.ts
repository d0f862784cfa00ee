import { useRef, useState } from 'react';

/**
 * Sends a request with a secret. Unlike with a mutation of the query client, the cache never has what was
 * sent. Resolves to false if it has failed; `problem` says why.
 */
export function useSend() {
  const isBusy = useRef(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  return {
    busy,
    problem,
    reset: () => setProblem(undefined),
    async send(request: () => Promise<unknown>): Promise<boolean> {
      if (isBusy.current) return false;
      isBusy.current = true;
      setBusy(true);
      setProblem(undefined);
      try {
        await request();
        return true;
      } catch (error) {
        setProblem(error);
        return false;
      } finally {
        isBusy.current = false;
        setBusy(false);
      }
    },
  };
}
