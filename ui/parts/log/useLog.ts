import { useEffect, useRef, useState } from 'react';
import { createLogReader, type LogReader, type LogSource } from './logReader.ts';
import { createLogStore, type LogStore } from './logStore.ts';

export type Log = { store: LogStore; reader: LogReader };

/** The log and its reader, which runs while the view is shown. Undefined before the first effect. */
export function useLog(source: LogSource): Log | undefined {
  const [, draw] = useState(0);
  const [log, setLog] = useState<Log>();
  const first = useRef(source);
  useEffect(() => {
    const store = createLogStore();
    const onChange = () => draw((count) => count + 1);
    const reader = createLogReader({ store, source: first.current, onChange });
    setLog({ store, reader });
    return () => reader.stop();
  }, []);
  return log;
}
