import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { validateTokensSearch } from '../../../app/account/tokensSearch.ts';
import { frameRoute } from '../../../app/rootRoute.tsx';
import { validateListSearch } from '../../../parts/list/search.ts';

const servicesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/service-accounts',
  validateSearch: validateListSearch,
  staticData: { title: 'Service accounts', needs: ['user:read'] },
  component: lazyRouteComponent(() => import('./ServicesPage.tsx'), 'ServicesPage'),
});

const newServiceRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/service-accounts/new',
  staticData: { title: 'New service account', needs: ['user:write'] },
  component: lazyRouteComponent(() => import('./NewServicePage.tsx'), 'NewServicePage'),
});

const serviceRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/service-accounts/$accountId',
  validateSearch: validateTokensSearch,
  staticData: { title: 'Service account', needs: ['user:read'] },
  component: lazyRouteComponent(() => import('./ServicePage.tsx'), 'ServicePage'),
});

const editServiceRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/service-accounts/$accountId/edit',
  staticData: { title: 'Edit service account', needs: ['user:write'] },
  component: lazyRouteComponent(() => import('./EditServicePage.tsx'), 'EditServicePage'),
});

export const serviceRoutes = [
  servicesRoute,
  newServiceRoute,
  serviceRoute,
  editServiceRoute,
] as const;
