import { formatFullTime, formatRelative, formatTime } from './format.ts';
import { usePreferences } from './preferences.tsx';
import { useToday } from './today.tsx';
import { useNow } from './useNow.ts';

type Props = {
  /** RFC 3339, or a Date. */
  value: string | Date | null | undefined;
  /** `relative` says how long ago it is. Default: the time, as short as it is clear. */
  format?: 'time' | 'relative' | 'full';
  /** What is shown without a value. Default: a dash. */
  none?: string;
};

/** Both zones as the tooltip. It is made when it is wanted: lists have many times. */
const showBoth = ({ currentTarget }: { currentTarget: HTMLElement }, at: Date): void => {
  const zones = [{ utc: false }, { utc: true }].map((choice) => formatFullTime(at, choice));
  currentTarget.title = [...new Set(zones)].join('\n');
};

function Relative({ at }: { at: Date }) {
  const now = useNow();
  return (
    <time dateTime={at.toISOString()} onPointerEnter={(event) => showBoth(event, at)}>
      {formatRelative(at, new Date(now))}
    </time>
  );
}

/** A time in the local zone or in UTC, as the user prefers; the other one is its tooltip. */
export function Time({ value, format = 'time', none = '–' }: Props) {
  const { utc } = usePreferences();
  const today = useToday();
  if (value === null || value === undefined || value === '') return <span>{none}</span>;
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return <span>{String(value)}</span>;
  if (format === 'relative') return <Relative at={at} />;
  return (
    <time dateTime={at.toISOString()} onPointerEnter={(event) => showBoth(event, at)}>
      {format === 'full' ? formatFullTime(at, { utc }) : formatTime(at, today, { utc })}
    </time>
  );
}
