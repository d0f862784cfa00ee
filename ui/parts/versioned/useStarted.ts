import { useState } from 'react';
import { problemFields } from '../problems.ts';

/**
 * The record as it was when a dialog was opened. It may be read again in the meantime: the version to send is that
 * of what the user has seen. `watch` takes the answer: after a 412, which the dialog shows, the dialog goes on with
 * the record as it is read then.
 */
export function useStarted<R extends { version: number }>(record: R) {
  const [started, setStarted] = useState(record);
  const [isRefused, setRefused] = useState(false);
  if (isRefused && record.version !== started.version) {
    setStarted(record);
    setRefused(false);
  }
  return {
    started,
    /** Another dialog about the record starts. */
    restart: () => {
      setStarted(record);
      setRefused(false);
    },
    watch: <T>(answered: Promise<T>): Promise<T> =>
      answered.catch((error: unknown) => {
        if (problemFields(error).status === 412) setRefused(true);
        throw error;
      }),
  };
}
