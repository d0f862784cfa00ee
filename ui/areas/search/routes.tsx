import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateSearchPage } from './search.ts';

const searchRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/search',
  validateSearch: validateSearchPage,
  staticData: { title: 'Search' },
  component: lazyRouteComponent(() => import('./SearchPage.tsx'), 'SearchPage'),
});

export const searchRoutes = [searchRoute] as const;
