import { recordOf } from '../../db/core/recordAudit.ts';
import type { RemoteType } from '../../db/models/RemoteType.ts';
import type { EventData } from '../../domain/events/events.ts';

type TypeEvent = 'job-type.announced' | 'job-type.updated' | 'job-type.deleted';

const eventData = ({ name, pool, state, digest }: RemoteType): EventData<TypeEvent> => ({
  name,
  pool,
  state,
  digest,
});

/** Audit entries and events about job types of runners. */
export const remoteTypeRecord = recordOf<RemoteType, TypeEvent>({
  type: 'job-type',
  auditView: ({ name, pool, state, shape, digest, acceptedBy }) => ({
    name,
    pool,
    state,
    shape,
    digest,
    acceptedBy,
  }),
  events: {
    created: 'job-type.announced',
    updated: 'job-type.updated',
    deleted: 'job-type.deleted',
  },
  eventData,
});
