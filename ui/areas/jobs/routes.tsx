import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';
import { validateNewJobSearch } from './newJobSearch.ts';

const jobsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/jobs',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Jobs',
    navigation: { label: 'Jobs', icon: 'play', order: 30, permissions: ['job:read'], key: 'j' },
  },
  component: lazyRouteComponent(() => import('./JobsPage.tsx'), 'JobsPage'),
});

const newJobRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/jobs/new',
  validateSearch: validateNewJobSearch,
  staticData: { title: 'New job', needs: ['job:write'] },
  component: lazyRouteComponent(() => import('./NewJobPage.tsx'), 'NewJobPage'),
});

const jobRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/jobs/$jobId',
  staticData: { title: 'Job' },
  component: lazyRouteComponent(() => import('./JobPage.tsx'), 'JobPage'),
});

export const jobRoutes = [jobsRoute, newJobRoute, jobRoute] as const;
