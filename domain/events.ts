/** Types of recorded events. Each later area adds its own. */
export const EVENT_TYPES = ['job.created', 'job.succeeded', 'job.failed', 'job.cancelled'] as const;
export type EventType = (typeof EVENT_TYPES)[number];
