import { createRouter } from '@tanstack/react-router';
import { frameRoute, rootRoute } from './app/rootRoute.tsx';
import { parseSearch, stringifySearch } from './app/search.ts';
import { idRoute } from './app/shell/idRoute.tsx';
import { otherRoute } from './app/shell/otherRoute.ts';
import { NotFoundPage } from './app/shell/NotFoundPage.tsx';
import { PageError } from './app/shell/PageError.tsx';
import { accessRoutes } from './areas/access/routes.tsx';
import { approvalRoutes } from './areas/approvals/routes.tsx';
import { auditRoutes } from './areas/audit/routes.tsx';
import { accountRoutes, signInRoutes } from './areas/auth/routes.tsx';
import { backupRoutes } from './areas/backups/routes.tsx';
import { eventRoutes } from './areas/events/routes.tsx';
import { helpRoutes } from './areas/help/routes.tsx';
import { homeRoutes } from './areas/home/routes.tsx';
import { inventoryRoutes } from './areas/inventory/routes.tsx';
import { jobRoutes } from './areas/jobs/routes.tsx';
import { jobTypeRoutes } from './areas/jobTypes/routes.tsx';
import { runnerRoutes } from './areas/runners/routes.tsx';
import { scheduleRoutes } from './areas/schedules/routes.tsx';
import { searchRoutes } from './areas/search/routes.tsx';
import { secretRoutes } from './areas/secrets/routes.tsx';
import { webhookRoutes } from './areas/webhooks/routes.tsx';

/** Every route. An area adds its own here: those in the frame need a session. */
const routeTree = rootRoute.addChildren([
  ...signInRoutes,
  frameRoute.addChildren([
    ...homeRoutes,
    ...inventoryRoutes,
    ...approvalRoutes,
    ...jobRoutes,
    ...jobTypeRoutes,
    ...runnerRoutes,
    ...secretRoutes,
    ...scheduleRoutes,
    ...webhookRoutes,
    ...eventRoutes,
    ...backupRoutes,
    ...searchRoutes,
    ...accessRoutes,
    ...auditRoutes,
    ...accountRoutes,
    ...helpRoutes,
    idRoute,
    otherRoute,
  ]),
]);

export const router = createRouter({
  routeTree,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  defaultErrorComponent: PageError,
  defaultNotFoundComponent: NotFoundPage,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  // oxlint-disable-next-line typescript/consistent-type-definitions
  interface Register {
    router: typeof router;
  }
}
