import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const eventsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/events',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Events',
    navigation: {
      label: 'Events',
      icon: 'list',
      order: 46,
      permissions: ['event:read'],
      key: 'e',
    },
  },
  component: lazyRouteComponent(() => import('./EventsPage.tsx'), 'EventsPage'),
});

const eventRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/events/$eventId',
  staticData: { title: 'Event', needs: ['event:read'] },
  component: lazyRouteComponent(() => import('./EventPage.tsx'), 'EventPage'),
});

type TypesSearch = { q?: string | undefined };

const eventTypesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/event-types',
  validateSearch: ({ q }: Record<string, unknown>): TypesSearch => ({
    q: typeof q === 'string' && q !== '' ? q : undefined,
  }),
  staticData: { title: 'Event types', needs: ['event:read', 'webhook:read'] },
  component: lazyRouteComponent(() => import('./EventTypesPage.tsx'), 'EventTypesPage'),
});

const eventTypeRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/event-types/$eventType',
  staticData: { title: 'Event type', needs: ['event:read', 'webhook:read'] },
  component: lazyRouteComponent(() => import('./EventTypePage.tsx'), 'EventTypePage'),
});

export const eventRoutes = [eventsRoute, eventRoute, eventTypesRoute, eventTypeRoute] as const;
