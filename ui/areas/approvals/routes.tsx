import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const listRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/approvals',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Approvals',
    navigation: {
      label: 'Approvals',
      icon: 'approval',
      order: 20,
      permissions: ['workflow:read', 'workflow:write', 'workflow:approve'],
      key: 'a',
      badge: 'approvals',
    },
  },
  component: lazyRouteComponent(() => import('./ApprovalsPage.tsx'), 'ApprovalsPage'),
});

const requestRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/approvals/$id',
  staticData: { title: 'Approval request' },
  component: lazyRouteComponent(() => import('./ApprovalPage.tsx'), 'ApprovalPage'),
});

export const approvalRoutes = [listRoute, requestRoute] as const;
