/** Types of recorded events. Each later area adds its own. */
export const EVENT_TYPES = [
  'job.created', 'job.succeeded', 'job.failed', 'job.cancelled',
  'user.created', 'user.updated',
  'role.created', 'role.updated', 'role.deleted',
  'assignment.created', 'assignment.deleted',
  'mapping.created', 'mapping.deleted',
  'provider.created', 'provider.updated', 'provider.deleted',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];
