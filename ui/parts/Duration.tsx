import { useEffect, useState } from 'react';
import { serverNow } from './clock.ts';
import { formatDuration } from './format.ts';

type Props =
  | { ms: number | null | undefined }
  | {
      from: string | null | undefined;
      /** Without an end, the time since `from` counts on. */
      to?: string | null | undefined;
    };

/** The time since `from`, counted on every second. */
function Running({ from }: { from: number }) {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(Math.floor((now - from) / 1_000), 0) * 1_000;
  return <>{seconds < 1_000 ? '0 s' : formatDuration(seconds)}</>;
}

/** A duration: in milliseconds, between two times, or since a time. */
export function Duration(props: Props) {
  if ('ms' in props) return <>{formatDuration(props.ms ?? Number.NaN)}</>;
  const { from, to } = props;
  if (from === null || from === undefined) return <>–</>;
  const start = Date.parse(from);
  if (to === null || to === undefined) return <Running from={start} />;
  return <>{formatDuration(Date.parse(to) - start)}</>;
}
