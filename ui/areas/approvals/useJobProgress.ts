import { useEffect, useState } from 'react';
import type { Schemas } from '../../app/api.ts';
import { readStream } from '../../app/stream.ts';

type Progress = Schemas['JobProgress'];
type Live = { progress: Progress | null | undefined; lastLine: string | undefined };

const NOTHING: Live = { progress: undefined, lastLine: undefined };

/** What is kept of a message of a log stream. */
function after(state: Live, event: string, data: string): Live {
  if (event === 'log') {
    const { message } = JSON.parse(data) as { message: string };
    return { ...state, lastLine: message };
  }
  if (event !== 'job') return state;
  const { progress } = JSON.parse(data) as { progress: Progress | null };
  return { ...state, progress };
}

/** The progress of a job while it runs, and the last line of its log. */
export function useJobProgress(jobId: string, isRunning: boolean): Live {
  const [live, setLive] = useState(NOTHING);
  useEffect(() => {
    if (!isRunning) return undefined;
    const ending = new AbortController();
    const follow = async () => {
      const path = `/api/jobs/${jobId}/logs?follow`;
      for await (const { event, data } of readStream(path, { signal: ending.signal }))
        setLive((state) => after(state, event, data));
    };
    // Without the stream the state of the job is still live: its events refresh it.
    follow().catch(() => undefined);
    return () => ending.abort();
  }, [jobId, isRunning]);
  return isRunning ? live : NOTHING;
}
