import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../../app/rootRoute.tsx';
import { validateListSearch } from '../../../parts/list/search.ts';
import { RBAC_READERS } from '../accessViews.ts';
import { validateTexts } from '../accessSearch.ts';

const rolesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/roles',
  validateSearch: validateListSearch,
  staticData: { title: 'Roles', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./RolesPage.tsx'), 'RolesPage'),
});

const newRoleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/new-role',
  validateSearch: validateTexts('from'),
  staticData: { title: 'New role', needs: ['rbac:write'] },
  component: lazyRouteComponent(() => import('./NewRolePage.tsx'), 'NewRolePage'),
});

const compareRolesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/compare-roles',
  validateSearch: validateTexts('roles', 'only'),
  staticData: { title: 'Compare roles', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./CompareRolesPage.tsx'), 'CompareRolesPage'),
});

const roleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/roles/$roleId',
  staticData: { title: 'Role', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./RolePage.tsx'), 'RolePage'),
});

const editRoleRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/roles/$roleId/edit',
  staticData: { title: 'Edit role', needs: ['rbac:write'] },
  component: lazyRouteComponent(() => import('./EditRolePage.tsx'), 'EditRolePage'),
});

export const roleRoutes = [
  rolesRoute,
  newRoleRoute,
  compareRolesRoute,
  roleRoute,
  editRoleRoute,
] as const;
