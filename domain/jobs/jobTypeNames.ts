/** The form of the name of a job type: two or more words, separated by dots. */
export const JOB_TYPE_NAME = '^[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*)+$';

/** Most characters of the name of a job type of runners, and of a pattern of names. */
export const MAX_JOB_TYPE_NAME = 128;

/** First words of the names of Holdfast's own types, which no other type has. */
const RESERVED_AREAS: ReadonlySet<string> = new Set([
  'approval',
  'audit',
  'backup',
  'core',
  'holdfast',
  'http',
  'inventory',
  'job',
  'retention',
  'schedule',
  'system',
  'webhook',
]);

/** True for a name that only a type of Holdfast itself may have. */
export const isReservedTypeName = (name: string): boolean =>
  RESERVED_AREAS.has(name.split('.', 1)[0] ?? '');
