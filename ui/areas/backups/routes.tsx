import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';
import { validateRestoreSearch } from './restoreSearch.ts';

const READERS = ['backup:read'];

const backupsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/backups',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Backups',
    navigation: { label: 'Backups', icon: 'archive', order: 75, permissions: READERS, key: 'b' },
  },
  component: lazyRouteComponent(() => import('./BackupsPage.tsx'), 'BackupsPage'),
});

const newBackupRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/backups/new',
  staticData: { title: 'New backup', needs: ['backup:write'] },
  component: lazyRouteComponent(() => import('./NewBackupPage.tsx'), 'NewBackupPage'),
});

const backupRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/backups/$backupId',
  validateSearch: validateListSearch,
  staticData: { title: 'Backup', needs: READERS },
  component: lazyRouteComponent(() => import('./BackupPage.tsx'), 'BackupPage'),
});

const restoreRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/backups/$backupId/restore',
  validateSearch: validateRestoreSearch,
  staticData: { title: 'Restore a backup', needs: READERS },
  component: lazyRouteComponent(() => import('./RestorePage.tsx'), 'RestorePage'),
});

const runRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/backups/$backupId/runs/$runId',
  staticData: { title: 'Restore', needs: READERS },
  component: lazyRouteComponent(() => import('./RunPage.tsx'), 'RunPage'),
});

export const backupRoutes = [
  backupsRoute,
  newBackupRoute,
  backupRoute,
  restoreRoute,
  runRoute,
] as const;
