import { localNow, noteServerDate } from '../parts/clock.ts';
import { ownAnswer } from './problem.ts';

const troubleListeners = new Set<() => void>();

/** Calls `listener` when a request has had no answer, or that of a server that cannot work now. */
export const onTrouble = (listener: () => void): void => void troubleListeners.add(listener);

const noteTrouble = (): void => {
  for (const listener of troubleListeners) listener();
};

/** `fetch`, which also reads the clock of the server. */
export async function timedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  const sentAt = localNow();
  const response = await fetch(...request);
  noteServerDate(response.headers.get('date'), sentAt, localNow());
  return response;
}

const methodOf = ([request, init]: Parameters<typeof fetch>): string =>
  init?.method ?? (request instanceof Request ? request.method : 'GET');

/**
 * `fetch` of the API. What it notices of an outage is said once, by the frame. Error: Problem, if something else than
 * Holdfast has answered.
 */
export async function serverFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  try {
    const response = await timedFetch(...request);
    if ([502, 503, 504].includes(response.status)) noteTrouble();
    return ownAnswer(response, methodOf(request));
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) noteTrouble();
    throw error;
  }
}
