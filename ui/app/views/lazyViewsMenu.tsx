import { CatchBoundary } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { ViewsProps } from '../../parts/list/viewsSlot.ts';

const ViewsMenu = lazy(() => import('./ViewsMenu.tsx'));

const Nothing = () => null;

/** The menu of saved views, which is loaded after the list. Without it the list is complete. */
export const lazyViewsMenu = (props: ViewsProps) => (
  <CatchBoundary getResetKey={() => 0} errorComponent={Nothing}>
    <Suspense>
      <ViewsMenu {...props} />
    </Suspense>
  </CatchBoundary>
);
