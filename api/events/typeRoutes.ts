import { Type } from 'typebox';
import { EVENT_DATA, type EventType } from '../../domain/events/events.ts';
import { exampleMessage } from '../../domain/events/examples.ts';
import { eventSummary } from '../../domain/events/summaries.ts';
import { closed } from '../http/schemas.ts';
import { ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';

const EventTypeRecord = Type.Object(
  {
    type: Type.String({ examples: ['job.failed'] }),
    summary: Type.String({ description: 'When an event of the type is emitted.' }),
    dataSchema: Type.Object(
      {},
      { additionalProperties: true, description: 'JSON Schema of `data`.' },
    ),
    example: Type.Object(
      {},
      { additionalProperties: true, description: 'A message as webhooks receive it.' },
    ),
  },
  { title: 'EventTypeDescription', ...closed },
);

const EventTypeList = Type.Object(
  { items: Type.Array(EventTypeRecord) },
  { title: 'EventTypeList', ...closed },
);

/** It never changes while the process runs, and is large: it is made once. */
const catalogue = () => ({
  items: (Object.keys(EVENT_DATA) as EventType[]).sort().map((type) => ({
    type,
    summary: eventSummary(type),
    dataSchema: EVENT_DATA[type],
    example: exampleMessage(type),
  })),
});
let made: ReturnType<typeof catalogue> | undefined;

/** The catalogue of event types. */
export const eventTypeRoutes = (): Route[] => [
  route({
    method: 'GET',
    path: '/api/event-types',
    tag: 'Events',
    requiresTenantHeader: true,
    signedIn: 'the description of the API has the same',
    operationId: 'listEventTypes',
    summary: 'List event types',
    description: 'Every type with the schema of its data and an example of its message.',
    responses: { 200: EventTypeList },
    handle: () => Promise.resolve(ok((made ??= catalogue()))),
  }),
];
