import { useRouterState } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { PageLink } from '../../parts/PageLink.tsx';
import { guideOf } from '../guideOf.ts';

type Props = { className?: string | undefined; onClick?: () => void; children: ReactNode };

/** A link to the guide of the page that is shown. */
export function GuideLink({ children, ...props }: Props) {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const { guide, hash } = guideOf(path);
  return (
    <PageLink {...props} to="/help/$guide" params={{ guide }} {...(hash !== '' && { hash })}>
      {children}
    </PageLink>
  );
}
