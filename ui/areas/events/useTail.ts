import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useLiveRefresh, useLiveState } from '../../app/live.ts';
import { serverNow } from '../../parts/clock.ts';
import { withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { countAfter, readEvents, type EventItem } from './eventQueries.ts';

const ALL = ['*'];
const TAIL = ['events', 'tail'];

/** The tail of the log while it is paused: the newest sequence that is shown. */
type Pause = { key: string; after: number };

/** Events that came between reading the list and the first message of the stream are read, too. */
function useCatchUp(): void {
  const client = useQueryClient();
  const state = useLiveState();
  const wasLive = useRef(state === 'live');
  useEffect(() => {
    if (state === 'live' && !wasLive.current) void client.invalidateQueries({ queryKey: TAIL });
    wasLive.current = state === 'live';
  }, [client, state]);
}

/**
 * The newest events that the filters leave. New ones appear as they are published; during a pause the list stays
 * as it is, and `fresh` says how many have come.
 */
export function useTail(search: ListSearch) {
  const client = useQueryClient();
  const wanted = withoutAppearance(search);
  const key = JSON.stringify(wanted);
  const [pause, setPause] = useState<Pause>();
  // With other filters it is another list, which starts with what is there now.
  const paused = pause?.key === key ? pause : undefined;
  const list = useList<EventItem>({
    queryKey: [...TAIL, wanted],
    read: (part, signal, now) => readEvents(search, now, part, signal),
    enabled: paused === undefined,
  });
  const freshKey = ['events', 'fresh', wanted, paused?.after];
  const fresh = useQuery({
    queryKey: freshKey,
    queryFn: ({ signal }) => countAfter(search, new Date(serverNow()), paused?.after ?? 0, signal),
    enabled: paused !== undefined,
  });
  useCatchUp();
  useLiveRefresh(ALL, TAIL);
  useLiveRefresh(ALL, ['events', 'fresh']);
  const resume = () => {
    setPause(undefined);
    void client.invalidateQueries({ queryKey: TAIL });
  };
  return {
    list,
    isPaused: paused !== undefined,
    fresh: paused && fresh.data,
    pause: () => setPause({ key, after: list.rows?.[0]?.sequence ?? 0 }),
    resume,
  };
}
