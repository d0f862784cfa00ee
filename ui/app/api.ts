import createClient from 'openapi-fetch';
import { problemOf, reach, whole } from './problem.ts';
import type { components, paths } from './schema.d.ts';
import { noteAnswer } from './session/rights.ts';
import { authorizedFetch } from './session/tokens.ts';

export { Problem, toProblem } from './problem.ts';

/** The records of the API by name, such as `Schemas['Job']`. */
export type Schemas = components['schemas'];

/** The client of the API, typed by its own description. It adds the token of the session. */
export const api = createClient<paths>({
  baseUrl: '',
  fetch: async (request) => {
    const response = await reach(request, authorizedFetch);
    noteAnswer(request, response);
    return response;
  },
});

/**
 * The content of an answer. Error: Problem, with status 0 and the code `network` if the server did not
 * answer. An aborted request fails as `fetch` does.
 */
export async function answer<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await whole(call);
  if (!response.ok) throw problemOf(response, error);
  return data as T;
}
