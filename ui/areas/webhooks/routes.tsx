import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { frameRoute } from '../../app/rootRoute.tsx';
import { validateListSearch } from '../../parts/list/search.ts';

const webhooksRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/webhooks',
  validateSearch: validateListSearch,
  staticData: {
    title: 'Webhooks',
    navigation: {
      label: 'Webhooks',
      icon: 'webhook',
      order: 44,
      permissions: ['webhook:read'],
      key: 'w',
    },
  },
  component: lazyRouteComponent(() => import('./WebhooksPage.tsx'), 'WebhooksPage'),
});

type NewSearch = { type?: string | undefined };

const newWebhookRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/webhooks/new',
  // The catalogue leads here with a type.
  validateSearch: ({ type }: Record<string, unknown>): NewSearch => ({
    type: typeof type === 'string' && /^[a-z][a-z.-]*$/.test(type) ? type : undefined,
  }),
  staticData: { title: 'New webhook', needs: ['webhook:write'] },
  component: lazyRouteComponent(() => import('./NewWebhookPage.tsx'), 'NewWebhookPage'),
});

const webhookRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/webhooks/$webhookId',
  validateSearch: validateListSearch,
  staticData: { title: 'Webhook', needs: ['webhook:read'] },
  component: lazyRouteComponent(() => import('./WebhookPage.tsx'), 'WebhookPage'),
});

const editWebhookRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/webhooks/$webhookId/edit',
  staticData: { title: 'Edit webhook', needs: ['webhook:write'] },
  component: lazyRouteComponent(() => import('./EditWebhookPage.tsx'), 'EditWebhookPage'),
});

const deliveriesRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/deliveries',
  validateSearch: validateListSearch,
  staticData: { title: 'Deliveries', needs: ['webhook:read'] },
  component: lazyRouteComponent(() => import('./DeliveriesPage.tsx'), 'DeliveriesPage'),
});

const deliveryRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/deliveries/$deliveryId',
  staticData: { title: 'Delivery', needs: ['webhook:read'] },
  component: lazyRouteComponent(() => import('./DeliveryPage.tsx'), 'DeliveryPage'),
});

export const webhookRoutes = [
  webhooksRoute,
  newWebhookRoute,
  webhookRoute,
  editWebhookRoute,
  deliveriesRoute,
  deliveryRoute,
] as const;
