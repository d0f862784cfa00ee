import { useRouter } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, MouseEvent } from 'react';

type Props = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'href'> & {
  /** A path of the console. */
  to: string;
};

/** A click that the browser handles itself: another tab, another window, a download. */
const isForBrowser = (event: MouseEvent): boolean =>
  event.defaultPrevented ||
  event.button !== 0 ||
  event.metaKey ||
  event.ctrlKey ||
  event.shiftKey ||
  event.altKey;

/**
 * A link to a page of the console. It follows no changes of the address, unlike the router's own: a list
 * draws dozens of links in each frame.
 */
export function AppLink({ to, onClick, ...props }: Props) {
  const router = useRouter();
  return (
    <a
      {...props}
      href={to}
      onClick={(event) => {
        onClick?.(event);
        if (isForBrowser(event)) return;
        event.preventDefault();
        void router.navigate({ to });
      }}
      onPointerEnter={() => void router.preloadRoute({ to }).catch(() => undefined)}
    />
  );
}
