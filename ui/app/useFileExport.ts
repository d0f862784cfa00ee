import { useEffect, useRef, useState } from 'react';
import { downloadBlob } from '../parts/clipboard.ts';
import { readFile } from './download.ts';

/**
 * Saves a stream of the API as a file. What is not complete is not saved. `read` asks for the stream. Leaving
 * the page stops it.
 */
export function useFileExport() {
  const [bytes, setBytes] = useState<number>();
  const [problem, setProblem] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function run(
    name: string,
    read: (signal: AbortSignal) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    setBytes(0);
    setProblem(undefined);
    try {
      downloadBlob(name, await readFile(await read(signal), setBytes));
    } catch (error) {
      if (!signal.aborted) setProblem(error);
    } finally {
      setBytes(undefined);
    }
  }

  return {
    /** How much of it is read; undefined while nothing is. */
    bytes,
    problem,
    stop: () => running.current?.abort(),
    download(name: string, read: (signal: AbortSignal) => Promise<unknown>): void {
      running.current = new AbortController();
      void run(name, read, running.current.signal);
    },
  };
}
