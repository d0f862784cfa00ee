import { useEffect, useState } from 'react';
import { flushSync } from 'react-dom';

/** True while the page is printed: a list that draws only what is in view draws all of it then. */
export function usePrinting(): boolean {
  const [isPrinting, setPrinting] = useState(false);
  useEffect(() => {
    const media = matchMedia('print');
    // What is drawn later is not on the paper.
    const set = (value: boolean) => flushSync(() => setPrinting(value));
    const onChange = () => set(media.matches);
    const onBefore = () => set(true);
    const onAfter = () => set(false);
    media.addEventListener('change', onChange);
    addEventListener('beforeprint', onBefore);
    addEventListener('afterprint', onAfter);
    return () => {
      media.removeEventListener('change', onChange);
      removeEventListener('beforeprint', onBefore);
      removeEventListener('afterprint', onAfter);
    };
  }, []);
  return isPrinting;
}
