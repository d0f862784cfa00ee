import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const READERS = ['jobtype:read', 'jobtype:write'];

const runnersRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runners',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Runners',
    navigation: {
      label: 'Runners',
      icon: 'network',
      order: 52,
      permissions: READERS,
      key: 'n',
    },
  },
  component: lazyRouteComponent(() => import('./RunnersPage.tsx'), 'RunnersPage'),
});

const newPoolRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runners/new',
  staticData: { title: 'New pool', needs: ['jobtype:write'] },
  component: lazyRouteComponent(() => import('./NewPoolPage.tsx'), 'NewPoolPage'),
});

const runnerRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runners/$runnerId',
  staticData: { title: 'Runner', needs: READERS },
  component: lazyRouteComponent(() => import('./RunnerPage.tsx'), 'RunnerPage'),
});

const poolRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runners/pools/$pool',
  staticData: { title: 'Pool', needs: READERS },
  component: lazyRouteComponent(() => import('./PoolPage.tsx'), 'PoolPage'),
});

const editPoolRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runners/pools/$pool/edit',
  staticData: { title: 'Edit pool', needs: ['jobtype:write'] },
  component: lazyRouteComponent(() => import('./EditPoolPage.tsx'), 'EditPoolPage'),
});

export const runnerRoutes = [
  runnersRoute,
  newPoolRoute,
  runnerRoute,
  poolRoute,
  editPoolRoute,
] as const;
