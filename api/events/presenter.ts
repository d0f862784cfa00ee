import type { StoredEvent } from '../../domain/events/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
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
