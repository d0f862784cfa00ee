import { answer, api, type Schemas } from '../../app/api.ts';
import { listEvents, type EventsQuery } from '../../app/listEvents.ts';
import type { paths } from '../../app/schema.d.ts';

export type Webhook = Schemas['Webhook'];
export type Delivery = Schemas['Delivery'];
export type WebhooksQuery = NonNullable<paths['/api/webhooks']['get']['parameters']['query']>;
export type DeliveriesQuery = NonNullable<paths['/api/deliveries']['get']['parameters']['query']>;

type Reading = { signal: AbortSignal };

const NAMES = 'labels,people';

/** Everything that is read about a webhook has a key that begins so. */
export const webhookKey = (id: string) => ['webhooks', 'one', id] as const;

/** A webhook with its newest delivery, which says how it is. */
export const webhookQuery = (id: string) => ({
  queryKey: [...webhookKey(id), 'record'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/webhooks/{id}', {
        params: { path: { id }, query: { limit: 1, include: NAMES } },
        signal,
      }),
    ),
});
export type WebhookDetail = Awaited<ReturnType<ReturnType<typeof webhookQuery>['queryFn']>>;

export const deliveryQuery = (id: string) => ({
  queryKey: ['webhooks', 'delivery', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/deliveries/{id}', {
        params: { path: { id }, query: { include: NAMES } },
        signal,
      }),
    ),
});
export type DeliveryDetail = Awaited<ReturnType<ReturnType<typeof deliveryQuery>['queryFn']>>;

const ENTRIES = 20;
/** What the service notes about deliveries: they are listed by themselves. */
const DELIVERY_ACTIONS = ['webhook.deliver', 'webhook.complete_deliveries'] as const;

/** The newest entries of the audit log about a webhook. */
export const webhookHistoryQuery = (id: string) => ({
  queryKey: [...webhookKey(id), 'history'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/audit', {
        params: {
          query: {
            subjectId: [id],
            'action.not': [...DELIVERY_ACTIONS],
            limit: ENTRIES,
            include: NAMES,
          },
        },
        signal,
      }),
    ),
});

/** Most values of one filter. */
const MAX_TYPES = 50;

type Count = { value: number; exact: boolean };

/** The types of a webhook, as filters take them: in parts, or one without a filter for all types. */
const partsOf = (types: readonly string[]): (readonly string[] | undefined)[] =>
  types.includes('*')
    ? [undefined]
    : Array.from({ length: Math.ceil(types.length / MAX_TYPES) }, (_, part) =>
        types.slice(part * MAX_TYPES, (part + 1) * MAX_TYPES),
      );

/** How many events a replay from a time would send. */
export const replayCountQuery = (
  { id, tenantId, eventTypes }: Pick<Webhook, 'id' | 'tenantId' | 'eventTypes'>,
  from: { since: string } | { after: number } | undefined,
) => ({
  queryKey: [...webhookKey(id), 'replay', from, eventTypes],
  queryFn: async ({ signal }: Reading): Promise<Count> => {
    const counts = await Promise.all(
      partsOf(eventTypes).map(async (type) => {
        const query = {
          ...from,
          ...(type && { type }),
          // A webhook of the platform receives the events of all tenants.
          ...(tenantId !== 'platform' && { tenantId: [tenantId] }),
          limit: 1,
          count: true,
        } as EventsQuery;
        return (await listEvents(query, signal)).count;
      }),
    );
    return {
      value: counts.reduce((sum, count) => sum + (count?.value ?? 0), 0),
      exact: counts.every((count) => count?.exact === true),
    };
  },
  enabled: from !== undefined,
  staleTime: 0,
  retry: false,
});
