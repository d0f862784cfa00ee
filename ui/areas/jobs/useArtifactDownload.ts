import { useEffect, useRef, useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { incompleteFile, readFile } from '../../app/download.ts';
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
    let shownAt = 0;
    const file = await readFile(stream, (size) => {
      if (localNow() - shownAt < SHOWN_MS) return;
      shownAt = localNow();
      setProgress(bytes === 0 ? 1 : Math.min(1, size / bytes));
    });
    if (file.size !== bytes) throw incompleteFile(`It has ${file.size} instead of ${bytes} bytes.`);
    return file;
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
