import { Type, type Static } from 'typebox';
import type { AuditArchiveData } from '../../domain/audit/archives.ts';
import { TENANT_ID } from '../../domain/access/tenantId.ts';
import type { AuditEntryDetails } from '../../domain/audit/auditEntry.ts';
import type { JobMark } from '../../domain/jobs/records.ts';
import { computeFor } from '../../platform/connectionUser.ts';
import { maskInTurns } from '../../platform/maskInTurns.ts';
import type { Slots } from '../../platform/slots.ts';
import type { AuditArchives } from '../../services/audit/auditArchives.ts';
import type { AuditLog, ChainRequest } from '../../services/audit/auditLog.ts';
import { exportResponse, ok } from '../http/response.ts';
import { choiceField, declareField, idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { hasAccount, viaOf, type Caller } from '../../domain/shared/caller.ts';
import { route, type Route } from '../http/route.ts';
import { REQUEST_ID } from '../middleware/requestContext.ts';
import {
  Actor,
  closed,
  Id,
  JsonObject,
  Nullable,
  Position,
  Reference,
  TenantId,
  Timestamp,
} from '../http/schemas.ts';
import { jobReference } from '../jobs/presenter.ts';
import { JobReference } from '../jobs/schemas.ts';

const tag = 'Audit';
const OUTCOMES = ['done', 'denied', 'failed'] as const;

const AnyObject = Nullable(JsonObject());

const AuditEntryRecord = Type.Object(
  {
    id: Id('aud'),
    at: Timestamp,
    tenantId: Reference('tenants'),
    actorId: Actor(),
    via: Type.String({
      description:
        'How the actor was authenticated: gateway, gateway:<tenantId> if the gateway named another tenant than that of the entry, session, token:<id>, anonymous or system.',
    }),
    action: Type.String({ description: 'Such as `job.create` or `access.denied`.' }),
    outcome: Type.Enum([...OUTCOMES], { title: 'AuditOutcome' }),
    subject: Type.Object(
      { type: Type.String(), id: Type.String() },
      { description: 'Record concerned, or the request.', 'x-subject': 'type' },
    ),
    before: AnyObject,
    after: AnyObject,
    requestId: Type.String(),
    address: Nullable(Type.String()),
    seal: Nullable(
      Type.Object(
        {
          position: Type.Integer(),
          hash: Type.String({
            description: 'SHA-256 in hexadecimal, over the previous hash and the content.',
          }),
        },
        {
          title: 'AuditSeal',
          description:
            'Position in the hash chain of the tenant; null until it is sealed, about a second after the write.',
        },
      ),
    ),
  },
  { title: 'AuditEntry', ...closed },
);
export type AuditEntryRecord = Static<typeof AuditEntryRecord>;

const AuditArchiveRecord = Type.Object(
  {
    id: Id('aar'),
    tenantId: Reference('tenants'),
    archive: Type.String({ description: 'Name of the archive in the backup store.' }),
    store: Type.Enum(['folder', 's3'], { title: 'AuditArchiveStore' }),
    firstPosition: Type.Integer({ description: 'Position of its first entry in the chain.' }),
    position: Type.Integer({ description: 'Position of its last entry: the checkpoint.' }),
    hash: Type.String({ description: 'Hash of its last entry.' }),
    since: Timestamp,
    until: Type.String({
      format: 'date-time',
      description: 'When its newest entry was written.',
    }),
    sizeBytes: Nullable(Type.Integer()),
    jobId: Reference('jobs'),
    job: Nullable(JobReference('The job that made it, and whether it is purged.')),
    status: Type.Enum(['checkpointed', 'completed'], {
      title: 'AuditArchiveStatus',
      description: 'checkpointed: the entries are being deleted from the database.',
    }),
    checkpointAt: Timestamp,
  },
  { title: 'AuditArchive', ...closed },
);
type AuditArchiveRecord = Static<typeof AuditArchiveRecord>;

const AuditHeadRecord = Type.Object(
  {
    tenantId: Reference('tenants'),
    position: Type.Integer({ description: 'Position of the last sealed entry.' }),
    hash: Type.String({
      description: 'Its hash, in hexadecimal: it covers all entries of the chain up to there.',
    }),
  },
  { title: 'AuditHead', ...closed },
);
export type AuditHeadRecord = Static<typeof AuditHeadRecord>;

const presentArchive = (archive: AuditArchiveData & JobMark): AuditArchiveRecord => ({
  id: archive.id,
  tenantId: archive.tenantId,
  archive: archive.archive,
  store: archive.store,
  firstPosition: archive.firstPosition,
  position: archive.position,
  hash: archive.hash.toString('hex'),
  since: archive.firstAt.toISOString(),
  until: archive.lastAt.toISOString(),
  sizeBytes: archive.sizeBytes,
  jobId: archive.jobId,
  job: jobReference(archive.jobId, archive),
  status: archive.status === 'completed' ? 'completed' : 'checkpointed',
  checkpointAt: (archive.checkpointAt ?? archive.createdAt).toISOString(),
});

const dotted = (rule: string, examples: string[]) =>
  Type.String({
    maxLength: 100,
    pattern: '^[a-z][a-z0-9_-]*(?:\\.[a-z0-9_-]+)*$',
    'x-rule': rule,
    examples,
  });

const AUDIT = defineList({
  name: 'audit',
  id: 'aud',
  item: AuditEntryRecord,
  title: 'AuditList',
  idTime: 'at',
  fields: {
    tenantId: idField(TenantId()),
    actorId: textField({ facet: true }),
    action: textField({
      schema: dotted('must be an action such as access.denied', ['access.denied']),
      facet: true,
    }),
    outcome: choiceField(OUTCOMES, { title: 'AuditOutcome' }),
    subjectType: textField({
      schema: Type.String({
        maxLength: 100,
        pattern: '^[a-z][a-z0-9_-]*$',
        'x-rule': 'must be a type of record such as job',
      }),
      facet: true,
    }),
    subjectId: textField(),
    requestId: textField({
      schema: Type.String({
        pattern: REQUEST_ID.source,
        'x-rule':
          'must be the id of a request: up to 128 letters, digits, dots, colons and hyphens',
      }),
    }),
    at: timeField(),
    position: declareField('bigint', Type.Integer(), { filter: false }),
  },
  own: {
    after: Type.Optional(
      Position(
        'A position in the chain of the tenant in `tenantId`. Lists the sealed entries after it in the order of ' +
          'the chain, whatever `sort` is. No entry with a smaller position appears later.',
      ),
    ),
    since: Type.Optional(Timestamp),
    until: Type.Optional(Timestamp),
  },
  aliases: { since: 'at.gte', until: 'at.lt' },
  more: {
    archived: Nullable(AuditArchiveRecord),
    lastPosition: Nullable(
      Type.Integer({
        description:
          'With `after`: the response covers the chain up to this position. Pass it as `after` to continue.',
      }),
    ),
  },
});
const HEADS = defineList({
  name: 'audit-heads',
  id: new RegExp(TENANT_ID),
  item: AuditHeadRecord,
  title: 'AuditHeadList',
  fields: { tenantId: idField(TenantId(), { sort: true, facet: false }) },
  idTime: null,
  defaultSort: 'tenantId',
});
const ARCHIVES = defineList({
  name: 'audit-archives',
  id: 'aar',
  item: AuditArchiveRecord,
  title: 'AuditArchiveList',
  fields: {
    tenantId: idField(TenantId()),
    store: choiceField(['folder', 's3'], { title: 'AuditArchiveStore' }),
    status: choiceField(['checkpointed', 'completed'], { title: 'AuditArchiveStatus' }),
    since: timeField(),
    until: timeField(),
    checkpointAt: timeField({ sort: true }),
  },
  idTime: 'checkpointAt',
  idsByTime: false,
});
const ExportQuery = Type.Object(AUDIT.filters, closed);

type ChainQuery = Record<string, unknown> & { after?: number; tenantId?: string[] };

/** What follows a position; undefined without `after`. Error: `invalid_request` without one tenant. */
function chainRequestFrom({ after, tenantId = [] }: ChainQuery): ChainRequest | undefined {
  if (after === undefined) return undefined;
  const [only, ...others] = tenantId;
  if (only === undefined || others.length > 0)
    throw invalidField(
      'query',
      '/tenantId',
      'required',
      'must be one tenant: `after` is a position in its chain',
    );
  return { tenantId: only, after };
}

/**
 * True for the actor of an entry: the same account, or the same name from a gateway at the same tenant.
 * A gateway may send any name, also that of the system or of an account.
 */
function isActor(caller: Caller, { actorId, via, tenantId }: AuditEntryDetails): boolean {
  if (actorId !== caller.actorId) return false;
  return hasAccount(caller)
    ? via === 'session' || via.startsWith('token:')
    : via === viaOf(caller, tenantId);
}

/** Presents entries. Only the actor of an entry sees what resembles a credential in it. */
const presentTo =
  (caller: Caller) =>
  async (entry: AuditEntryDetails): Promise<AuditEntryRecord> => ({
    id: entry.id,
    at: entry.at.toISOString(),
    tenantId: entry.tenantId,
    actorId: entry.actorId,
    via: entry.via,
    action: entry.action,
    outcome: entry.outcome,
    subject: { type: entry.subjectType, id: entry.subjectId },
    before: isActor(caller, entry) ? entry.before : await maskInTurns(entry.before),
    after: isActor(caller, entry) ? entry.after : await maskInTurns(entry.after),
    requestId: entry.requestId,
    address: entry.address,
    seal:
      entry.position === null || entry.hash === null
        ? null
        : { position: entry.position, hash: entry.hash.toString('hex') },
  });

async function* ndjsonLines(
  entries: AsyncIterable<AuditEntryDetails>,
  present: (entry: AuditEntryDetails) => Promise<AuditEntryRecord>,
): AsyncGenerator<string> {
  for await (const entry of entries) {
    const view = await present(entry);
    yield computeFor(() => `${JSON.stringify(view)}\n`);
  }
}

/** Routes of the audit log. */
export const auditRoutes = (
  auditLog: AuditLog,
  auditArchives: Pick<AuditArchives, 'list' | 'newest'>,
  exportSlots: Slots,
): Route[] => [
  route({
    method: 'GET',
    path: '/api/audit',
    operationId: 'listAuditEntries',
    tag,
    permission: 'audit:read',
    summary: 'List audit entries',
    description:
      '`archived` is the newest archive with earlier entries, which are not in the database any ' +
      'more; GET /api/audit/archives lists all archives. To follow the log of a tenant, pass ' +
      '`lastPosition` of the response as `after` of the next request: no entry is missed. ' +
      '410 `entries_archived`: entries after that position are archived. 410 `unknown_position`: ' +
      'the chain ends before it, since the database was restored or lost commits.',
    problems: [410],
    query: AUDIT.query,
    responses: { 200: AUDIT.schema },
    handle: async ({ caller, query }) => {
      const chain = chainRequestFrom(query);
      const [tenantId, ...others] = (query.tenantId ?? []) as string[];
      const archived = await auditArchives.newest(
        caller,
        others.length === 0 ? tenantId : undefined,
      );
      return AUDIT.respond(
        chain ? { ...query, sort: 'position' } : query,
        async (request) =>
          chain
            ? auditLog.listAfter(caller, chain, request)
            : { ...(await auditLog.list(caller, request)), lastPosition: null },
        presentTo(caller),
        ({ lastPosition }) => ({
          archived: archived ? presentArchive(archived) : null,
          lastPosition,
        }),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/audit/heads',
    operationId: 'listAuditHeads',
    tag,
    permission: 'audit:read',
    summary: 'List the ends of the audit chains',
    description:
      'Position and hash of the last sealed entry of each tenant. Keep them outside: an entry that ' +
      'has another hash at its position later, or none, proves that the chain was changed or cut off.',
    query: HEADS.query,
    responses: { 200: HEADS.schema },
    handle: ({ caller, query }) =>
      HEADS.respond(
        query,
        (request) => auditLog.heads(caller, request),
        ({ tenantId, position, hash }) => ({ tenantId, position, hash: hash.toString('hex') }),
      ),
  }),
  route({
    method: 'GET',
    path: '/api/audit/archives',
    operationId: 'listAuditArchives',
    tag,
    permission: 'audit:read',
    summary: 'List archives of the audit log',
    query: ARCHIVES.query,
    responses: { 200: ARCHIVES.schema },
    handle: ({ caller, query }) =>
      ARCHIVES.respond(query, (request) => auditArchives.list(caller, request), presentArchive),
  }),
  route({
    method: 'GET',
    path: '/api/audit/export',
    operationId: 'exportAuditEntries',
    tag,
    permission: 'audit:read',
    summary: 'Export audit entries as NDJSON, oldest first',
    description:
      'With `after`, the sealed entries after that position of a tenant, in the order of its chain: continue ' +
      'after `seal.position` of the last line.',
    problems: [410],
    query: ExportQuery,
    expensiveRead: { hasOwnSlots: true },
    responses: { 200: null },
    produces: ['application/x-ndjson'],
    keepsScope: true,
    handle: async ({ caller, query, signal }) => {
      const where = AUDIT.conditionsFrom(query);
      const chain = chainRequestFrom(query);
      return exportResponse(
        exportSlots,
        caller,
        ndjsonLines(await auditLog.stream(caller, { where, chain }, signal), presentTo(caller)),
        {
          contentType: 'application/x-ndjson',
          filename: 'audit.ndjson',
        },
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/audit/{id}',
    operationId: 'getAuditEntry',
    tag,
    permission: 'audit:read',
    summary: 'Get an audit entry',
    params: Type.Object({ id: Id('aud') }, closed),
    responses: { 200: AuditEntryRecord },
    handle: async ({ caller, params }) =>
      ok(await presentTo(caller)(await auditLog.read(caller, params.id))),
  }),
];
