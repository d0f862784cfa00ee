import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../../app/rootRoute.tsx';
import { validateListSearch } from '../../../parts/list/search.ts';
import { RBAC_READERS } from '../accessViews.ts';
import { validateTexts } from '../accessSearch.ts';

const assignmentsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/assignments',
  validateSearch: validateListSearch,
  staticData: { title: 'Assignments', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./AssignmentsPage.tsx'), 'AssignmentsPage'),
});

const newAssignmentRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/assignments/new',
  validateSearch: validateTexts('userId', 'roleId', 'tenantId', 'siteId', 'deviceId'),
  staticData: { title: 'New assignment', needs: ['rbac:write'] },
  component: lazyRouteComponent(() => import('./NewAssignmentPage.tsx'), 'NewAssignmentPage'),
});

const assignmentRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/assignments/$assignmentId',
  staticData: { title: 'Assignment', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./GrantPage.tsx'), 'AssignmentPage'),
});

const mappingsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/mappings',
  validateSearch: validateListSearch,
  staticData: { title: 'Group mappings', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./MappingsPage.tsx'), 'MappingsPage'),
});

const newMappingRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/mappings/new',
  validateSearch: validateTexts(
    'providerId',
    'externalGroup',
    'roleId',
    'tenantId',
    'siteId',
    'deviceId',
  ),
  staticData: { title: 'New group mapping', needs: ['rbac:write'] },
  component: lazyRouteComponent(() => import('./NewMappingPage.tsx'), 'NewMappingPage'),
});

const mappingRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/access/mappings/$mappingId',
  staticData: { title: 'Group mapping', needs: [...RBAC_READERS] },
  component: lazyRouteComponent(() => import('./GrantPage.tsx'), 'MappingPage'),
});

export const grantRoutes = [
  assignmentsRoute,
  newAssignmentRoute,
  assignmentRoute,
  mappingsRoute,
  newMappingRoute,
  mappingRoute,
] as const;
