import { useEffect, useRef } from 'react';

const checks = new Set<() => boolean>();

/** Whether the page has something that would be lost with it. */
export const hasUnsaved = (): boolean => [...checks].some((check) => check());

/** Notes what would be lost with the page, as long as the component is shown. */
export function useUnsaved(hasChanges: () => boolean): void {
  const latest = useRef(hasChanges);
  useEffect(() => void (latest.current = hasChanges));
  useEffect(() => {
    const check = () => latest.current();
    checks.add(check);
    return () => void checks.delete(check);
  }, []);
}
