import { useCallback, useRef, type KeyboardEvent } from 'react';

const LINKS = 'a[data-result]';

/** Moves between the field and the results with the arrows, as in a menu. Tab works as everywhere. */
export function useResultKeys() {
  const page = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const onKeyDown = useCallback((event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const stops: HTMLElement[] = [
      ...(field.current ? [field.current] : []),
      ...(page.current?.querySelectorAll<HTMLElement>(LINKS) ?? []),
    ];
    const at = stops.findIndex((stop) => stop === document.activeElement);
    const next = at < 0 ? undefined : stops[at + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }, []);
  return { page, field, onKeyDown };
}
