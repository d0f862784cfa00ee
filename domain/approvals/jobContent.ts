import { covers, scopeOf, type ResourceScope } from '../access/scope.ts';
import { isPayloadAuthor, type JobSummaryData } from '../jobs/records.ts';
import type { Caller } from '../shared/caller.ts';
import { INVENTORY_APPLY } from './approvals.ts';

/** The message where a reader may not know which records a change of the inventory is about. */
export const HIDDEN_CHANGE = 'Only readers of the inventory see what the change is about';

/** True for callers who may know what changes of the inventory at a resource scope are about. */
export const mayReadChanges = ({ rights }: Caller, scope: ResourceScope): boolean =>
  covers(scopeOf(rights, 'inventory:read'), scope);

/**
 * True for callers who see payload, result, messages and log of a job. The job of a change shows what a request
 * for approval shows to readers of the inventory only.
 */
export const seesJobContent = (caller: Caller, job: JobSummaryData): boolean =>
  job.type !== INVENTORY_APPLY ||
  isPayloadAuthor(caller, job) ||
  mayReadChanges(caller, {
    tenantId: job.tenantId,
    siteId: job.siteId,
    deviceId: job.deviceId,
  });
