import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../../app/rootRoute.tsx';
import { validateListSearch } from '../../../parts/list/search.ts';
import { validateTexts } from '../accessSearch.ts';

const providersRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/providers',
  validateSearch: validateListSearch,
  staticData: { title: 'Identity providers', needs: ['auth:read'] },
  component: lazyRouteComponent(() => import('./ProvidersPage.tsx'), 'ProvidersPage'),
});

const newProviderRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/providers/new',
  validateSearch: validateTexts('kind'),
  staticData: { title: 'New identity provider', needs: ['auth:write'] },
  component: lazyRouteComponent(() => import('./NewProviderPage.tsx'), 'NewProviderPage'),
});

const providerRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/providers/$providerId',
  staticData: { title: 'Identity provider', needs: ['auth:read'] },
  component: lazyRouteComponent(() => import('./ProviderPage.tsx'), 'ProviderPage'),
});

const editProviderRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/providers/$providerId/edit',
  staticData: { title: 'Edit identity provider', needs: ['auth:write'] },
  component: lazyRouteComponent(() => import('./EditProviderPage.tsx'), 'EditProviderPage'),
});

export const providerRoutes = [
  providersRoute,
  newProviderRoute,
  providerRoute,
  editProviderRoute,
] as const;
