import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useIdempotencyKeys } from '../../../app/idempotency.ts';
import { uploadFile } from '../../../app/upload.ts';
import type { Options } from './ImportOptions.tsx';
import { IMPORTS, type Import } from './importQueries.ts';
import type { ChosenFile } from './readFile.ts';

/** Sends a file. `part` is how much of it is sent, while that is in progress. */
export function useUpload(
  headers: Readonly<Record<string, string>>,
  onSent: (made: Import) => void,
) {
  const keys = useIdempotencyKeys();
  const client = useQueryClient();
  const [part, setPart] = useState<number>();
  const [problem, setProblem] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function send({ file, format }: ChosenFile, options: Options, signal: AbortSignal) {
    const { resource, mode, dryRun } = options;
    const query = new URLSearchParams({ mode, dryRun: String(dryRun) });
    if (resource !== '') query.set('resource', resource);
    const { name, size, lastModified } = file;
    const made = await keys.once({ name, size, lastModified, ...options }, (header) =>
      uploadFile<Import>({
        path: `/api/inventory/import?${query.toString()}`,
        file,
        headers: {
          ...headers,
          'content-type': format === 'csv' ? 'text/csv' : 'application/x-ndjson',
          ...header,
        },
        onProgress: setPart,
        signal,
      }),
    );
    void client.invalidateQueries({ queryKey: IMPORTS });
    onSent(made);
  }

  return {
    part,
    problem,
    cancel: () => running.current?.abort(),
    reset: () => setProblem(undefined),
    start(chosen: ChosenFile, options: Options): void {
      if (running.current !== undefined) return;
      const { signal } = (running.current = new AbortController());
      setPart(0);
      setProblem(undefined);
      send(chosen, options, signal)
        .catch((error: unknown) => {
          if (!signal.aborted) setProblem(error);
        })
        .finally(() => {
          running.current = undefined;
          setPart(undefined);
        });
    },
  };
}
