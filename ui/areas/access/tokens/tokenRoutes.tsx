import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../../app/rootRoute.tsx';
import { validateListSearch } from '../../../parts/list/search.ts';

const tokensRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/tokens',
  validateSearch: validateListSearch,
  staticData: { title: 'Tokens', needs: ['user:read'] },
  component: lazyRouteComponent(() => import('./TokensPage.tsx'), 'TokensPage'),
});

const tokenRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/tokens/$tokenId',
  staticData: { title: 'Token', needs: [] },
  component: lazyRouteComponent(() => import('./TokenPage.tsx'), 'TokenPage'),
});

export const tokenRoutes = [tokensRoute, tokenRoute] as const;
