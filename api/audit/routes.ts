import { Readable } from 'node:stream';
import { Type, type Static } from 'typebox';
import type { AuditFilter, AuditTrail } from '../../services/audit/auditLog.ts';
import { ok, streamed } from '../kit/answer.ts';
import { listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { TenantId } from '../access/schemas.ts';
import { Id, Name, Nullable, Timestamp } from '../http/schemas.ts';

const area = 'Audit';
const closed = { additionalProperties: false };
const OUTCOMES = ['done', 'denied', 'failed'] as const;

const anything = Nullable(Type.Object({}, { additionalProperties: true }));

const EntryRecord = Type.Object(
  {
    id: Id('aud'),
    at: Timestamp,
    tenantId: Type.String(),
    actorId: Type.String(),
    via: Type.String({ description: 'gateway, session, anonymous or system.' }),
    action: Type.String(),
    outcome: Type.Enum([...OUTCOMES]),
    subject: Type.Object({ type: Type.String(), id: Type.String() }),
    before: anything,
    after: anything,
    requestId: Type.String(),
    address: Nullable(Type.String()),
    seal: Nullable(
      Type.Object(
        {
          position: Type.Integer(),
          hash: Type.String({ description: 'SHA-256, in hexadecimal.' }),
        },
        {
          description:
            "Its place in its tenant's chain; null until it is sealed, about a second after it was written.",
        },
      ),
    ),
  },
  { title: 'AuditEntry', ...closed },
);
type EntryRecord = Static<typeof EntryRecord>;

const filters = {
  tenantId: Type.Optional(TenantId()),
  actorId: Type.Optional(Name()),
  action: Type.Optional(Name({ examples: ['access.denied'] })),
  outcome: Type.Optional(Type.Enum([...OUTCOMES])),
  subjectType: Type.Optional(Name()),
  subjectId: Type.Optional(Name()),
  requestId: Type.Optional(Name()),
  since: Type.Optional(Timestamp),
  until: Type.Optional(Timestamp),
};
const AuditQuery = Type.Object({ ...filters, ...pageQuery }, closed);
const ExportQuery = Type.Object(filters, closed);

type Entry = Awaited<ReturnType<AuditTrail['read']>>;

const present = (entry: Entry): EntryRecord => ({
  id: entry.id,
  at: entry.at.toISOString(),
  tenantId: entry.tenantId,
  actorId: entry.actorId,
  via: entry.via,
  action: entry.action,
  outcome: entry.outcome,
  subject: { type: entry.subjectType, id: entry.subjectId },
  before: entry.before,
  after: entry.after,
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
    ...(since !== undefined && { since: dateOf('since', since) }),
    ...(until !== undefined && { until: dateOf('until', until) }),
  };
}

async function* lines(entries: AsyncIterable<Entry>): AsyncGenerator<string> {
  for await (const entry of entries) yield `${JSON.stringify(present(entry))}\n`;
}

/** Who did what. */
export const auditRoutes = (auditTrail: AuditTrail): Route[] => [
  route({
    method: 'GET',
    path: '/api/audit',
    area,
    permission: 'audit:read',
    summary: 'List audit entries, newest first',
    query: AuditQuery,
    answers: { 200: listOf(EntryRecord, 'AuditList') },
    handle: ({ caller, query: { limit, cursor, ...filter } }) =>
      listAnswer(
        'audit',
        'aud',
        { limit, cursor },
        (page) => auditTrail.list(caller, filterOf(filter), page),
        present,
      ),
  }),
  route({
    method: 'GET',
    path: '/api/audit/export',
    area,
    permission: 'audit:read',
    summary: 'All matching entries as NDJSON, oldest first',
    query: ExportQuery,
    answers: { 200: null },
    produces: 'application/x-ndjson',
    watch: ({ caller }, began) => {
      auditTrail.checkUnchanged(caller, began);
      return Promise.resolve();
    },
    handle: ({ caller, query, signal }) => {
      const filter = filterOf(query);
      return Promise.resolve(
        streamed(
          'application/x-ndjson',
          Readable.from(lines(auditTrail.all(caller, filter, signal)), {
            objectMode: false,
            highWaterMark: 65_536,
          }),
        ),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/audit/{id}',
    area,
    permission: 'audit:read',
    summary: 'Read an audit entry',
    params: Type.Object({ id: Id('aud') }, closed),
    answers: { 200: EntryRecord },
    handle: async ({ caller, params }) => ok(present(await auditTrail.read(caller, params.id))),
  }),
];
