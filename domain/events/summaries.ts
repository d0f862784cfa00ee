import { capitalized, nounOf, withArticle } from '../shared/nouns.ts';
import type { EventType } from './events.ts';

type Inventory = Extract<EventType, `inventory.${string}`>;

/** When an event of each type is emitted, as a sentence. Those of inventory records say it alike. */
const SUMMARIES: Readonly<Record<Exclude<EventType, Inventory>, string>> = {
  'webhook.created': 'A webhook was created.',
  'webhook.updated': 'A webhook was changed, enabled or disabled by a user, or has another secret.',
  'webhook.deleted': 'A webhook was deleted.',
  'webhook.disabled':
    'A webhook was disabled because its endpoint answered 410, or failed for five days.',
  'job.created': 'A job was created.',
  'job.started': 'The first attempt of a job has started.',
  'job.waiting': 'A job waits for a runner of its pool, or for its type to be accepted.',
  'job.succeeded': 'A job has succeeded.',
  'job.failed': 'A job has failed, after its last attempt.',
  'job.cancelled': 'A job was cancelled.',
  'job-type.announced': 'A runner has announced a job type, or another version of one.',
  'job-type.updated': 'A job type of runners was accepted, disabled or enabled.',
  'job-type.deleted': 'A job type of runners was deleted.',
  'pool.created': 'A pool of runners was created.',
  'pool.updated': 'A pool of runners was changed.',
  'pool.deleted': 'A pool of runners was deleted.',
  'rbac.assignment.created': 'A role was assigned to a user.',
  'rbac.assignment.deleted': 'A role was taken from a user.',
  'rbac.mapping.created': 'A role was mapped to a group of an identity provider.',
  'rbac.mapping.deleted': 'A mapping of a group to a role was deleted.',
  'rbac.role.created': 'A role was created.',
  'rbac.role.updated': 'The permissions or the name of a role were changed.',
  'rbac.role.deleted': 'A role was deleted.',
  'quota.updated': 'The quotas of a tenant were changed.',
  'retention.updated': 'The retention periods of a tenant or the platform were changed.',
  'auth.provider.created': 'An identity provider was created.',
  'auth.provider.updated': 'An identity provider was changed.',
  'auth.provider.deleted': 'An identity provider was deleted.',
  'auth.user.created': 'A user was created, by an administrator or a first sign-in.',
  'auth.user.updated':
    'A user was changed, enabled or disabled, moved to another tenant, or got another password.',
  'token.expiring': 'An API token expires soon.',
  'token.unused': 'An API token was not used for a long time.',
  'schedule.created': 'A schedule was created.',
  'schedule.updated': 'A schedule was changed, paused or resumed.',
  'schedule.deleted': 'A schedule was deleted.',
  'schedule.ended': 'A schedule has had its last occurrence.',
  'schedule.fired': 'A schedule has created a job.',
  'schedule.skipped': 'One or more occurrences of a schedule were skipped.',
  'schedule.failed': 'A schedule could not create the job of an occurrence.',
  'workflow.created': 'An approval request was created.',
  'workflow.approved': 'An approval request has all its approvals.',
  'workflow.rejected': 'An approval request was rejected.',
  'workflow.expired': 'An approval request has expired without a decision.',
  'workflow.cancelled': 'An approval request was cancelled.',
  'workflow.executed': 'What was approved was executed, or has failed.',
  'workflow.moved': 'An open approval request has followed its device to another site.',
  'workflow.reminder': 'An approval request still waits for decisions.',
  'workflow.decision.created': 'A person has approved or rejected a request.',
  'workflow.comment.created': 'A person has commented on an approval request.',
  'backup.created': 'A backup was started.',
  'backup.completed': 'A backup is complete.',
  'backup.failed': 'A backup has failed.',
  'backup.deleted': 'A backup was deleted.',
  'restore.completed': 'A restore was applied.',
  'restore.failed': 'A restore has failed; nothing of it was applied.',
  'secret.created': 'A named secret was created.',
  'secret.updated': 'A named secret was changed, or has another value.',
  'secret.deleted': 'A named secret was deleted.',
  'legal-hold.created': 'A legal hold was created.',
  'legal-hold.released': 'A legal hold was released.',
};

/** When an event of `type` is emitted. */
export function eventSummary(type: EventType): string {
  const own: string | undefined = (SUMMARIES as Readonly<Record<string, string>>)[type];
  if (own !== undefined) return own;
  const [, resource = '', verb = ''] = type.split('.');
  const subject = capitalized(withArticle(nounOf(resource)));
  return `${subject} was ${verb === 'updated' ? 'changed' : verb}.`;
}
