import { QueryClient } from '@tanstack/react-query';
import { Problem } from './problem.ts';

const MAX_RETRIES = 3;
const LONGEST_WAIT_MS = 15_000;

/** True for what may pass: an outage, or too many requests. */
const mayPass = (error: Error): boolean =>
  error instanceof Problem && [0, 429, 502, 503, 504].includes(error.status);

const waitMs = (attempt: number, error: Error): number => {
  const asked = error instanceof Problem ? error.retryAfterSeconds : undefined;
  return Math.min(LONGEST_WAIT_MS, asked === undefined ? 500 * 2 ** attempt : asked * 1_000);
};

/** What pages have read. Old data stays on screen while it is read again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      networkMode: 'always',
      retry: (count, error) => count < MAX_RETRIES && mayPass(error),
      retryDelay: waitMs,
    },
    mutations: { networkMode: 'always', retry: false },
  },
});
