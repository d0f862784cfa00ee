import { useEffect, useRef, useState } from 'react';
import { readFile } from '../../app/download.ts';
import { downloadBlob } from '../../parts/clipboard.ts';
import { serverNow } from '../../parts/clock.ts';
import type { ListSearch } from '../../parts/list/search.ts';
import { exportEntries } from './auditQueries.ts';

/** Saves the entries of a search as a file of NDJSON. What is not complete is not saved. */
export function useAuditExport(search: ListSearch) {
  const [bytes, setBytes] = useState<number>();
  const [problem, setProblem] = useState<unknown>();
  const stopped = useRef<AbortController>(undefined);
  useEffect(() => () => stopped.current?.abort(), []);

  async function run(signal: AbortSignal): Promise<void> {
    setBytes(0);
    setProblem(undefined);
    try {
      const stream = await exportEntries(search, new Date(serverNow()), signal);
      downloadBlob('audit.ndjson', await readFile(stream, setBytes));
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
    download(): void {
      stopped.current = new AbortController();
      void run(stopped.current.signal);
    },
  };
}
