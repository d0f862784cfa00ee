import type { StoredEvent } from '../../domain/events/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { EventStreamItem } from '../../services/events/followEvents.ts';
import { encodeMessage, type ServerSentEvent } from '../http/eventStream.ts';
import type { EventRecord } from './schemas.ts';

/** A published event as callers see it. */
export const eventRecord = (event: StoredEvent): EventRecord => ({
  id: event.id,
  sequence: assertDefined(event.sequence, 'event.sequence'),
  type: event.type,
  tenantId: event.tenantId,
  subject: { type: event.subjectType, id: event.subjectId },
  actorId: event.actorId,
  data: event.data,
  createdAt: event.createdAt.toISOString(),
});

/** Many followers get the same event, which is encoded once. */
const encoded = new WeakMap<StoredEvent, string>();

function encodeEvent(event: StoredEvent): string {
  const known = encoded.get(event);
  if (known !== undefined) return known;
  const message = encodeMessage({
    id: String(event.sequence),
    event: 'event',
    data: eventRecord(event),
  });
  encoded.set(event, message);
  return message;
}

/** A stream of events as messages. */
export async function* streamMessages(
  items: AsyncIterable<EventStreamItem>,
): AsyncGenerator<ServerSentEvent> {
  for await (const item of items)
    yield item.kind === 'events'
      ? { encoded: item.events.map(encodeEvent).join('') }
      : { comment: 'waiting', id: String(item.sequence) };
}
