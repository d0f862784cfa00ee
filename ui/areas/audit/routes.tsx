import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const auditRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/audit',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Audit',
    navigation: {
      label: 'Audit',
      icon: 'history',
      order: 90,
      permissions: ['audit:read'],
      key: 'u',
    },
  },
  component: lazyRouteComponent(() => import('./AuditPage.tsx'), 'AuditPage'),
});

const entryRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/audit/$entryId',
  staticData: { title: 'Audit entry', needs: ['audit:read'] },
  component: lazyRouteComponent(() => import('./AuditEntryPage.tsx'), 'AuditEntryPage'),
});

export const auditRoutes = [auditRoute, entryRoute] as const;
