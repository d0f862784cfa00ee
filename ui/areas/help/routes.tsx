import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';

const helpRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/help',
  staticData: { title: 'Guides' },
  component: lazyRouteComponent(() => import('./HelpPage.tsx'), 'HelpPage'),
});

/** What the tables of a guide are searched for. */
type GuideSearch = { q?: string | undefined };

const guideRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/help/$guide',
  validateSearch: ({ q }: Readonly<Record<string, unknown>>): GuideSearch => ({
    ...(typeof q === 'string' && q !== '' && { q }),
  }),
  staticData: { title: 'Guide' },
  component: lazyRouteComponent(() => import('./GuidePage.tsx'), 'GuidePage'),
});

export const helpRoutes = [helpRoute, guideRoute] as const;
