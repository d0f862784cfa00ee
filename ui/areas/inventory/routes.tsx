import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';
import { readAhead } from './space/readAhead.ts';

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
  validateSearch: validateListSearch,
  staticData: { title: 'Inventory', needs: ['inventory:read'] },
  component: lazyRouteComponent(() => import('./ResourcePage.tsx'), 'ResourcePage'),
});

/** The address space of a VRF (the global table without one), the prefix whose map is shown, and a network in it. */
type SpaceSearch = { vrf?: string; map?: string; at?: string };

const spaceRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/prefixes/space',
  validateSearch: ({ vrf, map, at }: Readonly<Record<string, unknown>>): SpaceSearch => ({
    ...(typeof vrf === 'string' && { vrf }),
    ...(typeof map === 'string' && { map }),
    ...(typeof at === 'string' && { at }),
  }),
  staticData: { title: 'Address space', needs: ['inventory:read'] },
  loaderDeps: ({ search }) => search,
  loader: ({ deps }) => {
    // The page does not wait for it, and says what fails.
    readAhead(deps).catch(() => undefined);
  },
  component: lazyRouteComponent(() => import('./space/SpacePage.tsx'), 'SpacePage'),
});

/** An address, recorded or not, in the address space of a VRF or in the global table. */
type AddressSearch = { address?: string; vrf?: string };

const addressRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/ip-addresses/at',
  validateSearch: ({ address, vrf }: Readonly<Record<string, unknown>>): AddressSearch => ({
    ...(typeof address === 'string' && { address }),
    ...(typeof vrf === 'string' && { vrf }),
  }),
  staticData: { title: 'Address', needs: ['inventory:read'] },
  component: lazyRouteComponent(() => import('./addresses/AddressPage.tsx'), 'AddressPage'),
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

/** Fields that a new record starts with, such as the site of a rack. */
type Given = Record<string, string>;

const newRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/$resource/new',
  validateSearch: (raw: Readonly<Record<string, unknown>>): Given =>
    Object.fromEntries(
      Object.entries(raw).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      ),
    ),
  staticData: { title: 'New record', needs: ['inventory:write'] },
  component: lazyRouteComponent(() => import('./NewRecordPage.tsx'), 'NewRecordPage'),
});

const editRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/$resource/$recordId/edit',
  staticData: { title: 'Edit record', needs: ['inventory:write'] },
  component: lazyRouteComponent(() => import('./EditRecordPage.tsx'), 'EditRecordPage'),
});

const importsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/imports',
  validateSearch: validateListSearch,
  staticData: { title: 'Imports', needs: ['inventory:read'] },
  component: lazyRouteComponent(() => import('./imports/ImportsPage.tsx'), 'ImportsPage'),
});

const newImportRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/imports/new',
  validateSearch: ({
    resource,
  }: Readonly<Record<string, unknown>>): {
    resource?: string | undefined;
  } => ({ ...(typeof resource === 'string' && { resource }) }),
  staticData: { title: 'Import', needs: ['inventory:write'] },
  component: lazyRouteComponent(() => import('./imports/NewImportPage.tsx'), 'NewImportPage'),
});

const importRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/inventory/imports/$importId',
  validateSearch: validateListSearch,
  staticData: { title: 'Import', needs: ['inventory:read'] },
  component: lazyRouteComponent(() => import('./imports/ImportPage.tsx'), 'ImportPage'),
});

export const inventoryRoutes = [
  inventoryRoute,
  importsRoute,
  newImportRoute,
  importRoute,
  resourceRoute,
  spaceRoute,
  addressRoute,
  newRoute,
  recordRoute,
  editRoute,
] as const;
