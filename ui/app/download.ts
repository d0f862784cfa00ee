import { Problem } from './problem.ts';

/** The problem of a file that did not arrive whole: nothing of it is saved. */
export const incompleteFile = (detail: string): Problem =>
  new Problem({ status: 0, code: 'network', title: 'The file is incomplete', detail });

/** The pieces of a stream. Error: Problem, if the connection breaks before its end. */
async function* piecesOf(stream: unknown): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  if (!(stream instanceof ReadableStream)) return;
  const reader = (stream as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      if (error instanceof Error && error.name === 'AbortError') throw error;
      throw incompleteFile('The connection broke before the end of the file.');
    });
    if (done) return;
    yield value;
  }
}

/**
 * Reads a response that was asked for as a stream, piece by piece: the browser keeps large pieces on disk.
 * `onRead` gets the number of bytes so far. Error: Problem, if the connection breaks before its end.
 */
export async function readFile(stream: unknown, onRead: (bytes: number) => void): Promise<Blob> {
  const parts: Blob[] = [];
  let size = 0;
  for await (const part of piecesOf(stream)) {
    parts.push(new Blob([part]));
    size += part.length;
    onRead(size);
  }
  return new Blob(parts);
}
