import type { TSchema } from 'typebox';
import { EVENT_DATA, type EventType } from './events.ts';

/** The letters of the ids of records, by the names of the fields that have them. */
const PREFIXES: Readonly<Record<string, string>> = {
  jobId: 'job',
  webhookId: 'whk',
  scheduleId: 'sch',
  runId: 'run',
  approvalId: 'apr',
  backupId: 'bkp',
  secretId: 'sec',
  holdId: 'hld',
  tokenId: 'tok',
  userId: 'usr',
  requestedBy: 'usr',
  decidedBy: 'usr',
  commentedBy: 'usr',
  roleId: 'rol',
  assignmentId: 'asg',
  mappingId: 'asg',
  providerId: 'idp',
  siteId: 'sit',
  fromSiteId: 'sit',
  toSiteId: 'sit',
  recordId: 'dev',
};

/** Texts of fields that are no ids. */
const TEXTS: Readonly<Record<string, string>> = {
  tenantId: 'red',
  type: 'core.echo',
  jobType: 'core.echo',
  name: 'nightly',
  label: 'ams-leaf-1',
  title: 'Retire ams-leaf-1',
  endpointOrigin: 'https://hooks.example.net',
  cronExpression: '0 2 * * *',
  timezone: 'Europe/Amsterdam',
  pool: 'edge',
  digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  externalGroup: 'netops',
  status: 'completed',
  error: 'timed_out',
};

const LISTS: Readonly<Record<string, readonly string[]>> = {
  eventTypes: ['job.failed'],
  acceptTypes: ['edge.*'],
  changed: ['status'],
};

const NUMBERS: Readonly<Record<string, number>> = {
  attempts: 1,
  requiredApprovals: 1,
  approvals: 1,
  number: 1,
  occurrences: 1,
  version: 2,
  sizeBytes: 482_113,
  rows: 1_204,
  created: 12,
  changed: 3,
  deleted: 0,
};

const ID = '01jd0cmxk5e5v8kyzwq0q8s3rt';
const TIME = '2026-11-21T09:30:00.000Z';

type Part = {
  type?: string;
  enum?: readonly unknown[];
  anyOf?: readonly Part[];
  format?: string;
  properties?: Readonly<Record<string, Part>>;
  required?: readonly string[];
  items?: Part;
};

/** The status that an event is about is its last word, where the schema has that status. */
const choiceFrom = (choices: readonly unknown[], verb: string): unknown =>
  choices.find((choice) => choice === verb) ?? choices[0];

/** Fields that are null unless something has failed. */
const isLeftOut = (name: string, verb: string): boolean =>
  ['id', 'siteId', 'deviceId', 'executeAt'].includes(name) ||
  (name === 'error' && verb !== 'failed');

function valueOf(name: string, schema: Part, verb: string): unknown {
  const { anyOf, enum: choices, properties } = schema;
  if (anyOf) {
    const isNullable = anyOf.some(({ type }) => type === 'null');
    const other = anyOf.find(({ type }) => type !== 'null');
    return other === undefined || (isNullable && isLeftOut(name, verb))
      ? null
      : valueOf(name, other, verb);
  }
  if (choices) return choiceFrom(choices, verb);
  if (schema.type === 'object')
    return Object.fromEntries(
      Object.entries(properties ?? {})
        .filter(([field]) => schema.required?.includes(field))
        .map(([field, each]) => [field, valueOf(field, each, verb)]),
    );
  if (schema.type === 'array')
    return LISTS[name] ?? [valueOf(name.replace(/s$/, ''), schema.items ?? {}, verb)];
  if (schema.type === 'integer') return NUMBERS[name] ?? 30;
  if (schema.type === 'boolean') return true;
  if (schema.format === 'date-time') return TIME;
  return textOf(name);
}

function textOf(name: string): string {
  const known = TEXTS[name];
  if (known !== undefined) return known;
  const prefix = PREFIXES[name] ?? Object.entries(PREFIXES).find(([id]) => endsLike(name, id))?.[1];
  return prefix === undefined ? 'text' : `${prefix}_${ID}`;
}

/** `assignedUserId` is the id of a user. */
const endsLike = (name: string, id: string): boolean =>
  name.toLowerCase().endsWith(id.toLowerCase());

/** A message with an event of `type`, as webhooks receive it. */
export const exampleMessage = (type: EventType): object => {
  const verb = type.split('.').at(-1) ?? '';
  const schema: TSchema = EVENT_DATA[type];
  return {
    type,
    timestamp: TIME,
    sequence: 4711,
    tenantId: TEXTS.tenantId,
    data: valueOf('data', schema, verb),
  };
};
