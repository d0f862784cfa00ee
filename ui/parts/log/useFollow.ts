import { useCallback, useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** So near to the end, in pixels, the end is what is being read. */
const NEAR_END = 24;

type Options = {
  scrollerRef: RefObject<HTMLElement | null>;
  rows: number;
  /** The height of all rows. */
  height: number;
  isLive: boolean;
  /** Opens at the end. */
  startsAtEnd: boolean;
};

/**
 * Keeps the end of a log in view while it grows. It lets go when the reader scrolls up, counts what
 * comes in the meantime, and starts again at the end.
 */
export function useFollow({ scrollerRef, rows, height, isLive, startsAtEnd }: Options) {
  const [isFollowing, setFollowing] = useState(startsAtEnd);
  const [rowsAtRelease, setRowsAtRelease] = useState(rows);
  const lastTop = useRef(0);
  const isHeld = useRef(startsAtEnd);
  const latestRows = useRef(rows);
  useLayoutEffect(() => void (latestRows.current = rows), [rows]);

  const hold = useCallback((next: boolean) => {
    isHeld.current = next;
    setFollowing(next);
  }, []);

  useLayoutEffect(() => {
    const element = scrollerRef.current;
    if (!element || !isHeld.current) return;
    element.scrollTop = element.scrollHeight;
    lastTop.current = element.scrollTop;
  }, [scrollerRef, height, rows, isFollowing]);

  const onScroll = () => {
    const element = scrollerRef.current;
    if (!element) return;
    const { scrollTop, scrollHeight, clientHeight } = element;
    const isAtEnd = scrollHeight - clientHeight - scrollTop < NEAR_END;
    const isUp = scrollTop < lastTop.current;
    lastTop.current = scrollTop;
    if (isAtEnd && !isHeld.current && isLive) hold(true);
    // Growing does not move the view up: only the reader does.
    else if (!isAtEnd && isUp && isHeld.current) {
      setRowsAtRelease(rows);
      hold(false);
    }
  };

  return {
    onScroll,
    newRows: isLive && !isFollowing ? Math.max(rows - rowsAtRelease, 0) : 0,
    resume: () => hold(true),
    release: useCallback(() => {
      if (!isHeld.current) return;
      setRowsAtRelease(latestRows.current);
      hold(false);
    }, [hold]),
  };
}
