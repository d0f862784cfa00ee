import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const secretsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/secrets',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Secrets',
    navigation: {
      label: 'Secrets',
      icon: 'key',
      order: 54,
      permissions: ['secret:read'],
      key: 'k',
    },
  },
  component: lazyRouteComponent(() => import('./SecretsPage.tsx'), 'SecretsPage'),
});

const newSecretRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/secrets/new',
  staticData: { title: 'New secret', needs: ['secret:write'] },
  component: lazyRouteComponent(() => import('./NewSecretPage.tsx'), 'NewSecretPage'),
});

const secretRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/secrets/$secretId',
  staticData: { title: 'Secret', needs: ['secret:read'] },
  component: lazyRouteComponent(() => import('./SecretPage.tsx'), 'SecretPage'),
});

const editSecretRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/secrets/$secretId/edit',
  staticData: { title: 'Edit secret', needs: ['secret:write'] },
  component: lazyRouteComponent(() => import('./EditSecretPage.tsx'), 'EditSecretPage'),
});

export const secretRoutes = [secretsRoute, newSecretRoute, secretRoute, editSecretRoute] as const;
