import { useEffect, useState } from 'react';

const MAIN = 'main';

/** The focus goes to the body when the element that has it is removed. */
const isLost = (): boolean => document.activeElement === document.body;

/**
 * For a dialog that is open from its first render on, and is removed to close it: returns the focus to
 * where it was, or to the page if that element was removed, too. Mantine does so only when `opened` changes.
 */
export function useReturnedFocus(isOpenAtFirst: boolean): void {
  const [before] = useState(() => (isOpenAtFirst ? document.activeElement : null));
  useEffect(
    () => () => {
      if (!(before instanceof HTMLElement) || before === document.body || !isLost()) return;
      const target = before.isConnected ? before : document.getElementById(MAIN);
      target?.focus({ preventScroll: true });
    },
    [before],
  );
}
