import { networkProblem, ownAnswer, Problem, problemOf } from './problem.ts';
import { authorizedFetch } from './session/tokens.ts';

type Upload = {
  path: string;
  file: Blob;
  headers: Readonly<Record<string, string>>;
  /** Gets how much of the file is sent, from 0 to 1. */
  onProgress: (part: number) => void;
  signal: AbortSignal;
};

const aborted = (): DOMException => new DOMException('The upload was cancelled', 'AbortError');

/** The headers of an answer that say whose it is, and when to try again. */
const headersOf = (request: XMLHttpRequest): Record<string, string> =>
  Object.fromEntries(
    ['content-type', 'retry-after', 'x-request-id'].flatMap((name) => {
      const value = request.getResponseHeader(name);
      return value === null ? [] : [[name, value]];
    }),
  );

/** Sends a file with the headers of a request. `fetch` does not say how much of a body is sent. */
const sendFile =
  ({ file, onProgress, signal }: Upload) =>
  ({ url, method, headers }: Request): Promise<Response> =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const stop = () => request.abort();
      request.open(method, url);
      headers.forEach((value, name) => request.setRequestHeader(name, value));
      request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 1);
      request.onload = () => {
        const { status, responseText } = request;
        const answer = new Response(responseText, { status, headers: headersOf(request) });
        try {
          resolve(ownAnswer(answer, method));
        } catch (error) {
          reject(error);
        }
      };
      request.onerror = () => reject(new TypeError('The connection broke'));
      request.onabort = () => reject(aborted());
      request.onloadend = () => signal.removeEventListener('abort', stop);
      signal.addEventListener('abort', stop);
      request.send(file);
    });

/** Sends a file to the API and returns its answer. Errors: Problem; `AbortError`. */
export async function uploadFile<T>(upload: Upload): Promise<T> {
  const { path, headers, signal } = upload;
  const request = new Request(path, { method: 'POST', headers, signal });
  const response = await authorizedFetch(request, sendFile(upload)).catch((error: unknown) => {
    const isAborted = error instanceof Error && error.name === 'AbortError';
    throw isAborted || error instanceof Problem ? error : networkProblem(error, 'POST');
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw problemOf(response, body);
  return body as T;
}
