import { useEffect, useRef, useState } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { localNow } from '../../parts/clock.ts';
import { downloadBlob } from '../../parts/clipboard.ts';
import type { Artifact } from './jobQueries.ts';

/** Progress is shown at most so often. */
const SHOWN_MS = 100;

/**
 * Saves an artifact as a file. It is read with the token of the session, piece by piece: the browser keeps
 * large pieces on disk. What is not complete is not saved.
 */
export function useArtifactDownload(jobId: string, { name, bytes }: Artifact) {
  const [progress, setProgress] = useState<number>();
  const [problem, setProblem] = useState<unknown>();
  const stopped = useRef<AbortController>(undefined);
  useEffect(() => () => stopped.current?.abort(), []);

  async function read(signal: AbortSignal): Promise<Blob> {
    const stream = await answer(
      api.GET('/api/jobs/{jobId}/artifacts/{name}', {
        params: { path: { jobId, name } },
        parseAs: 'stream',
        signal,
      }),
    );
    const parts: Blob[] = [];
    let [size, shownAt] = [0, 0];
    for await (const part of piecesOf(stream)) {
      parts.push(new Blob([part]));
      size += part.length;
      if (localNow() - shownAt < SHOWN_MS) continue;
      shownAt = localNow();
      setProgress(bytes === 0 ? 1 : Math.min(1, size / bytes));
    }
    if (size !== bytes) throw incomplete(`It has ${size} instead of ${bytes} bytes.`);
    return new Blob(parts);
  }

  async function run(signal: AbortSignal): Promise<void> {
    setProgress(0);
    setProblem(undefined);
    try {
      downloadBlob(name, await read(signal));
    } catch (error) {
      if (!signal.aborted) setProblem(error);
    } finally {
      setProgress(undefined);
    }
  }

  return {
    /** How much of it is read, from 0 to 1; undefined while nothing is. */
    progress,
    problem,
    download(): void {
      stopped.current = new AbortController();
      void run(stopped.current.signal);
    },
  };
}

const incomplete = (detail: string): Problem =>
  new Problem({ status: 0, code: 'network', title: 'The file is incomplete', detail });

/** The pieces of a stream. Error: Problem, if the connection breaks before its end. */
async function* piecesOf(stream: unknown): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  if (!(stream instanceof ReadableStream)) return;
  const reader = (stream as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      if (error instanceof Error && error.name === 'AbortError') throw error;
      throw incomplete('The connection broke before the end of the file.');
    });
    if (done) return;
    yield value;
  }
}
