import { createLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, Ref } from 'react';

type Props = AnchorHTMLAttributes<HTMLAnchorElement> & {
  ref?: Ref<HTMLAnchorElement>;
  /** It leads to what is on screen, as the chosen one of several views. */
  current?: boolean;
};

const Anchor = ({ current, 'aria-current': _, ...props }: Props) => (
  <a {...props} aria-current={current === true ? 'page' : undefined} />
);

/**
 * A link of the router. The router's own calls each link that leads to a part of the present address the
 * current page: on the page of a record, that is the link to its list.
 */
export const PageLink = createLink(Anchor);
