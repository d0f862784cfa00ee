import { useEffect, useState } from 'react';
import type { Schemas } from '../../app/api.ts';
import { readStream } from '../../app/stream.ts';
import { followProgress, type Live } from './jobProgress.ts';

type JobLive = Live<Schemas['JobProgress']>;

const NOTHING: JobLive = { progress: undefined, lastLine: undefined };

/** The progress of a job while it runs, and the last line of its log. */
export function useJobProgress(jobId: string, isRunning: boolean): JobLive {
  const [live, setLive] = useState(NOTHING);
  useEffect(() => {
    if (!isRunning) return undefined;
    const ending = new AbortController();
    const { signal } = ending;
    void followProgress<Schemas['JobProgress']>({
      read: (lastEventId) => readStream(`/api/jobs/${jobId}/logs?follow`, { signal, lastEventId }),
      onLive: setLive,
      wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      signal,
    });
    return () => ending.abort();
  }, [jobId, isRunning]);
  return isRunning ? live : NOTHING;
}
