import type { Schemas } from './api.ts';
import { send } from './session/requests.ts';

/** Settings of the server that pages need, also before anyone has signed in. */
export const consoleSettings = {
  queryKey: ['console'],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    send<Schemas['ConsoleSettings']>('/api/console', { signal }),
  staleTime: Infinity,
} as const;
