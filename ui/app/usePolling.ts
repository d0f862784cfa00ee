import { hashKey, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';

/** Reads the queries whose key begins with `queryKey` again at an interval, while the page is visible. */
export function usePolling(queryKey: readonly unknown[], everyMs: number): void {
  const client = useQueryClient();
  const key = useRef(queryKey);
  useEffect(() => void (key.current = queryKey));
  const hash = hashKey(queryKey);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void client.invalidateQueries({ queryKey: key.current });
    }, everyMs);
    return () => clearInterval(timer);
  }, [client, hash, everyMs]);
}
