import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateTexts } from './accessSearch.ts';
import { RBAC_READERS } from './accessViews.ts';
import { grantRoutes } from './grants/grantRoutes.tsx';
import { providerRoutes } from './providers/providerRoutes.tsx';
import { roleRoutes } from './roles/roleRoutes.tsx';
import { serviceRoutes } from './services/serviceRoutes.tsx';
import { tokenRoutes } from './tokens/tokenRoutes.tsx';
import { userRoutes } from './users/userRoutes.tsx';

const accessRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access',
  staticData: {
    title: 'Access',
    navigation: {
      label: 'Access',
      icon: 'users',
      order: 85,
      permissions: ['user:read', ...RBAC_READERS, 'auth:read'],
      key: 'c',
    },
  },
  component: lazyRouteComponent(() => import('./AccessIndexPage.tsx'), 'AccessIndexPage'),
});

const explainRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/explain',
  validateSearch: validateTexts(
    'userId',
    'permission',
    'jobType',
    'tenantId',
    'siteId',
    'deviceId',
  ),
  staticData: { title: 'Why can …', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./explain/ExplainPage.tsx'), 'ExplainPage'),
});

export const accessRoutes = [
  accessRoute,
  ...userRoutes,
  ...serviceRoutes,
  ...tokenRoutes,
  ...roleRoutes,
  ...grantRoutes,
  ...providerRoutes,
  explainRoute,
] as const;
