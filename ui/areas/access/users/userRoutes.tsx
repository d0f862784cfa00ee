import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { validateTokensSearch } from '../../../app/account/tokensSearch.ts';
import { frameRoute } from '../../../app/rootRoute.tsx';
import { validateListSearch } from '../../../parts/list/search.ts';

const usersRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/users',
  validateSearch: validateListSearch,
  staticData: { title: 'Users', needs: ['user:read'] },
  component: lazyRouteComponent(() => import('./UsersPage.tsx'), 'UsersPage'),
});

const newUserRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/users/new',
  staticData: { title: 'New user', needs: ['user:write'] },
  component: lazyRouteComponent(() => import('./NewUserPage.tsx'), 'NewUserPage'),
});

const userRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/users/$userId',
  validateSearch: validateTokensSearch,
  staticData: { title: 'User', needs: ['user:read'] },
  component: lazyRouteComponent(() => import('./UserPage.tsx'), 'UserPage'),
});

const editUserRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/users/$userId/edit',
  staticData: { title: 'Edit user', needs: ['user:write'] },
  component: lazyRouteComponent(() => import('./EditUserPage.tsx'), 'EditUserPage'),
});

export const userRoutes = [usersRoute, newUserRoute, userRoute, editUserRoute] as const;
