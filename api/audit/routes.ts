import { Type, type Static } from 'typebox';
import type { AuditArchiveData } from '../../domain/audit/archives.ts';
import type { AuditEntryDetails } from '../../domain/audit/auditEntry.ts';
import type { JobMark } from '../../domain/jobs/records.ts';
import { computeFor } from '../../platform/connectionUser.ts';
import type { Slots } from '../../platform/slots.ts';
import type { AuditArchives } from '../../services/audit/auditArchives.ts';
import type { AuditFilter, AuditLog } from '../../services/audit/auditLog.ts';
import { exportResponse, ok } from '../http/response.ts';
import { listResponse, listSchema, pageQuery, paginate } from '../http/pagination.ts';
import { parseTime } from '../http/queryTime.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { maskCredentials } from '../../domain/shared/credentials.ts';
import { route, type Route } from '../http/route.ts';
import { REQUEST_ID } from '../middleware/requestContext.ts';
import { TenantId } from '../access/schemas.ts';
import { Actor, Id, Name, Nullable, Reference, Timestamp } from '../http/schemas.ts';
import { jobReference } from '../jobs/presenter.ts';
import { JobReference } from '../jobs/schemas.ts';

const tag = 'Audit';
const closed = { additionalProperties: false };
const OUTCOMES = ['done', 'denied', 'failed'] as const;

const AnyObject = Nullable(Type.Object({}, { additionalProperties: true }));

const AuditEntryRecord = Type.Object(
  {
    id: Id('aud'),
    at: Timestamp,
    tenantId: Reference('tenants'),
    actorId: Actor(),
    via: Type.String({
      description: 'How the actor was authenticated: gateway, session, anonymous or system.',
    }),
    action: Type.String({ description: 'Such as `job.create` or `access.denied`.' }),
    outcome: Type.Enum([...OUTCOMES]),
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
    store: Type.Enum(['folder', 's3']),
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
      description: 'checkpointed: the entries are being deleted from the database.',
    }),
    checkpointAt: Timestamp,
  },
  { title: 'AuditArchive', ...closed },
);
type AuditArchiveRecord = Static<typeof AuditArchiveRecord>;

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

const AuditList = Type.Object(
  {
    ...listSchema(AuditEntryRecord, 'AuditList').properties,
    archived: Nullable(AuditArchiveRecord),
  },
  {
    title: 'AuditList',
    description:
      '`archived` is the newest archive with earlier entries, which are not in the database any ' +
      'more; GET /api/audit/archives lists all archives.',
  },
);

const filters = {
  tenantId: Type.Optional(TenantId()),
  actorId: Type.Optional(Name()),
  action: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[a-z][a-z0-9_-]*(?:\\.[a-z0-9_-]+)*$',
      'x-rule': 'must be an action such as access.denied',
      examples: ['access.denied'],
    }),
  ),
  outcome: Type.Optional(Type.Enum([...OUTCOMES])),
  subjectType: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[a-z][a-z0-9_-]*$',
      'x-rule': 'must be a type of record such as job',
    }),
  ),
  subjectId: Type.Optional(Name()),
  requestId: Type.Optional(
    Type.String({
      pattern: REQUEST_ID.source,
      'x-rule': 'must be the id of a request: up to 128 letters, digits, dots, colons and hyphens',
    }),
  ),
  since: Type.Optional(Timestamp),
  until: Type.Optional(Timestamp),
};
const AuditQuery = Type.Object({ ...filters, ...pageQuery }, closed);
const ExportQuery = Type.Object(filters, closed);

/** Presents entries. Only the actor of an entry sees what resembles a credential in it. */
const presentTo =
  ({ actorId }: Caller) =>
  (entry: AuditEntryDetails): AuditEntryRecord => ({
    id: entry.id,
    at: entry.at.toISOString(),
    tenantId: entry.tenantId,
    actorId: entry.actorId,
    via: entry.via,
    action: entry.action,
    outcome: entry.outcome,
    subject: { type: entry.subjectType, id: entry.subjectId },
    before: entry.actorId === actorId ? entry.before : maskCredentials(entry.before),
    after: entry.actorId === actorId ? entry.after : maskCredentials(entry.after),
    requestId: entry.requestId,
    address: entry.address,
    seal:
      entry.position === null || entry.hash === null
        ? null
        : { position: entry.position, hash: entry.hash.toString('hex') },
  });

function filterOf({ since, until, ...same }: Static<typeof ExportQuery>): AuditFilter {
  return {
    ...(same as AuditFilter),
    ...(since !== undefined && { since: parseTime('since', since) }),
    ...(until !== undefined && { until: parseTime('until', until) }),
  };
}

async function* ndjsonLines(
  entries: AsyncIterable<AuditEntryDetails>,
  present: (entry: AuditEntryDetails) => AuditEntryRecord,
): AsyncGenerator<string> {
  for await (const entry of entries) yield computeFor(() => `${JSON.stringify(present(entry))}\n`);
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
    summary: 'List audit entries, newest first',
    query: AuditQuery,
    responses: { 200: AuditList },
    handle: async ({ caller, query: { limit, cursor, ...filter } }) => {
      const page = await paginate(
        'audit',
        'aud',
        { limit, cursor },
        (request) => auditLog.list(caller, filterOf(filter), request),
        presentTo(caller),
      );
      const archived = await auditArchives.newest(caller, filter.tenantId);
      return ok({ ...page, archived: archived ? presentArchive(archived) : null });
    },
  }),
  route({
    method: 'GET',
    path: '/api/audit/archives',
    operationId: 'listAuditArchives',
    tag,
    permission: 'audit:read',
    summary: 'List archives of the audit log, newest first',
    query: Type.Object({ tenantId: Type.Optional(TenantId()), ...pageQuery }, closed),
    responses: { 200: listSchema(AuditArchiveRecord, 'AuditArchiveList') },
    handle: ({ caller, query: { limit, cursor, ...filter } }) =>
      listResponse(
        'audit-archives',
        'aar',
        { limit, cursor },
        (page) => auditArchives.list(caller, filter, page),
        presentArchive,
      ),
  }),
  route({
    method: 'GET',
    path: '/api/audit/export',
    operationId: 'exportAuditEntries',
    tag,
    permission: 'audit:read',
    summary: 'Export audit entries as NDJSON, oldest first',
    query: ExportQuery,
    expensiveRead: { hasOwnSlots: true },
    responses: { 200: null },
    produces: ['application/x-ndjson'],
    recheckAccess: ({ caller }, initialCaller) => {
      auditLog.assertSameScope(caller, initialCaller);
      return Promise.resolve();
    },
    handle: ({ caller, query, signal }) => {
      const filter = filterOf(query);
      return Promise.resolve(
        exportResponse(
          exportSlots,
          caller,
          ndjsonLines(auditLog.stream(caller, filter, signal), presentTo(caller)),
          { contentType: 'application/x-ndjson', filename: 'audit.ndjson' },
        ),
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
      ok(presentTo(caller)(await auditLog.read(caller, params.id))),
  }),
];
