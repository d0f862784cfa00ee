import { useCallback, useSyncExternalStore } from 'react';
import { formatLineHash, parseLineHash } from './rows.ts';
import type { LineRange } from './logStore.ts';

function subscribe(onChange: () => void): () => void {
  window.addEventListener('hashchange', onChange);
  window.addEventListener('popstate', onChange);
  return () => {
    window.removeEventListener('hashchange', onChange);
    window.removeEventListener('popstate', onChange);
  };
}

/** The lines that the address of the page names, and how they are set. */
export function useLineHash(): [LineRange | undefined, (range: LineRange) => void] {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  const select = useCallback((range: LineRange) => {
    window.history.replaceState(window.history.state, '', `#${formatLineHash(range)}`);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  }, []);
  return [parseLineHash(hash), select];
}
