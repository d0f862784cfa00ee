import { createRootRoute, createRoute, Outlet } from '@tanstack/react-router';
import { Frame } from './shell/Frame.tsx';

/** Above everything, also above the sign-in page. */
export const rootRoute = createRootRoute({ component: Outlet });

/** The frame of the pages that need a session; areas add their routes to it. */
export const frameRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'frame',
  component: Frame,
});
