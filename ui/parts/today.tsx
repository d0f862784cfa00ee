import { createContext, use, useState, type ReactNode } from 'react';
import { useNow } from './useNow.ts';

const TodayContext = createContext(new Date(0));

const isSameDay = (one: Date, other: Date): boolean =>
  one.toDateString() === other.toDateString() && one.getUTCDate() === other.getUTCDate();

/** Provides the present day. A console is open for days. */
export function WithToday({ children }: { children: ReactNode }) {
  const now = new Date(useNow());
  const [today, setToday] = useState(now);
  if (!isSameDay(today, now)) setToday(now);
  return <TodayContext value={today}>{children}</TodayContext>;
}

/** A time of the present day; it changes when the day does, here or in UTC. */
export const useToday = (): Date => use(TodayContext);
