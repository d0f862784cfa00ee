import type { ClaimReport } from '../../db/jobs/startedEvents.ts';
import { needsSlot, type Lane } from '../../domain/jobs/jobType.ts';
import type { Ids } from '../../platform/ids.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { jobLogTopic } from './jobAudit.ts';

/** What others learn of a claim of attempts: the event of a first one, and for followers of the log. */
export const claimReport = (
  { ids, jobTypes }: { ids: Ids; jobTypes: JobTypes },
  jobIds: readonly string[],
  lane: Lane,
): ClaimReport => ({
  startedEvents: {
    ids: jobIds.map(() => ids.next('evt')),
    exceptTypes: jobTypes.all().flatMap(({ name, emitsEvents }) => (emitsEvents ? [] : [name])),
  },
  // A short job ends in a moment, with a notification.
  topics: needsSlot(lane) ? jobIds.map(jobLogTopic) : [],
});
