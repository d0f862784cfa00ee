import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const jobTypesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/job-types',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Job types',
    navigation: {
      label: 'Job types',
      icon: 'bolt',
      order: 50,
      permissions: ['job:read'],
      key: 't',
    },
  },
  component: lazyRouteComponent(() => import('./JobTypesPage.tsx'), 'JobTypesPage'),
});

const jobTypeRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/job-types/$name',
  staticData: { title: 'Job type' },
  component: lazyRouteComponent(() => import('./JobTypePage.tsx'), 'JobTypePage'),
});

export const jobTypeRoutes = [jobTypesRoute, jobTypeRoute] as const;
