import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateAnySearch } from './resourceFilters.ts';

const inventoryRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory',
  staticData: {
    title: 'Inventory',
    navigation: {
      label: 'Inventory',
      icon: 'server',
      order: 10,
      permissions: ['inventory:read'],
      key: 'i',
    },
  },
  component: lazyRouteComponent(() => import('./InventoryPage.tsx'), 'InventoryPage'),
});

const resourceRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/$resource',
  validateSearch: validateAnySearch,
  staticData: { title: 'Inventory', needs: ['inventory:read'] },
  component: lazyRouteComponent(() => import('./ResourcePage.tsx'), 'ResourcePage'),
});

/** A record as it is, or as it was at a time. */
type RecordSearch = { at?: string | undefined };

const recordRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/$resource/$recordId',
  validateSearch: ({ at }: Readonly<Record<string, unknown>>): RecordSearch => ({
    ...(typeof at === 'string' && !Number.isNaN(Date.parse(at)) && { at }),
  }),
  staticData: { title: 'Record', needs: ['inventory:read'] },
  component: lazyRouteComponent(() => import('./InventoryRecordPage.tsx'), 'InventoryRecordPage'),
});

export const inventoryRoutes = [inventoryRoute, resourceRoute, recordRoute] as const;
