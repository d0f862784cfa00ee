import { Readable } from 'node:stream';
import { Type, type Static } from 'typebox';
import { JOB_STATUSES } from '../../domain/jobs/jobs.ts';
import { MAX_IMPORT_BYTES } from '../../domain/inventory/imports.ts';
import { RESOURCE_NAMES } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { InventoryExports } from '../../services/inventory/exports.ts';
import type {
  FileFormat,
  ImportState,
  InventoryImports,
} from '../../services/inventory/imports.ts';
import type { Jobs } from '../../services/jobs.ts';
import { accepted, ok, streamed } from '../kit/answer.ts';
import { jobAtEnd } from '../kit/jobAtEnd.ts';
import { decodeCursor, encodeCursor, listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import { route, type Route } from '../kit/route.ts';
import { Id, Nullable, Timestamp } from '../http/schemas.ts';
import { OUTCOMES, PlanConflictView, PlanErrorView, selectionQuery } from './schemas.ts';
import { workflowIdOf } from '../jobs/presenter.ts';
import { filterFrom } from '../routes/inventory.ts';

const area = 'Inventory';
const closed = { additionalProperties: false };
const TYPES: Readonly<Record<string, FileFormat>> = {
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
};
const CONTENT_TYPES: Readonly<Record<FileFormat, string>> = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
};

const ImportQuery = Type.Object(
  {
    resource: Type.Optional(
      Type.Enum([...RESOURCE_NAMES], {
        description:
          'What the rows are; without it, lines of NDJSON are changes with resource, operation and record.',
      }),
    ),
    dryRun: Type.Boolean({
      default: false,
      description: 'Say what would come of each row, and write nothing.',
    }),
  },
  closed,
);

const ImportRecord = Type.Object(
  {
    id: Id('imp'),
    resource: Nullable(Type.String()),
    dryRun: Type.Boolean(),
    status: Type.Enum([...JOB_STATUSES], { description: 'Of its job.' }),
    rows: Type.Integer(),
    done: Type.Integer(),
    counts: Type.Object(
      Object.fromEntries(OUTCOMES.map((outcome) => [outcome, Type.Integer()])),
      closed,
    ),
    jobId: Id('job'),
    workflowId: Type.String(),
    createdBy: Type.String(),
    createdAt: Timestamp,
  },
  { title: 'Import', ...closed },
);

const ImportRow = Type.Object(
  {
    line: Type.Integer({ description: 'In the file.' }),
    outcome: Nullable(Type.Enum([...OUTCOMES])),
    id: Nullable(Type.String()),
    errors: Type.Array(PlanErrorView),
    conflicts: Type.Array(PlanConflictView),
    warnings: Type.Array(Type.Object({}, { additionalProperties: true })),
  },
  { title: 'ImportRow', ...closed },
);

const OneImport = Type.Object({ id: Id('imp') }, closed);
const ListQuery = Type.Object(pageQuery, closed);
const RowsQuery = Type.Object(
  { outcome: Type.Optional(Type.Enum([...OUTCOMES])), ...pageQuery },
  closed,
);

type Deps = { imports: InventoryImports; exports: InventoryExports; jobs: Jobs };
type Row = Awaited<ReturnType<InventoryImports['rows']>>[number];

const importView = ({ record, counts, status }: ImportState): Static<typeof ImportRecord> => ({
  id: record.id,
  resource: record.resource,
  dryRun: record.dryRun,
  status,
  rows: record.rows,
  done: record.done,
  counts: Object.fromEntries(OUTCOMES.map((outcome) => [outcome, counts[outcome] ?? 0])),
  jobId: record.jobId,
  workflowId: workflowIdOf(record.jobId),
  createdBy: record.createdBy,
  createdAt: record.createdAt.toISOString(),
});

const rowView = ({ line, outcome, record_id: id, report }: Row) => ({
  line,
  outcome,
  id,
  errors: [],
  conflicts: [],
  warnings: [],
  ...report,
});

/** Files that come in and go out. */
export function inventoryFileRoutes({ imports, exports, jobs }: Deps): Route[] {
  const atEnd = jobAtEnd(jobs);
  return [
    route({
      method: 'POST',
      path: '/api/inventory/import',
      area,
      permission: 'inventory:write',
      summary:
        'Take in a CSV or NDJSON file, as a job; rows with an id are changes, others are new',
      query: ImportQuery,
      upload: { types: Object.keys(TYPES), limitBytes: MAX_IMPORT_BYTES },
      answers: { 202: ImportRecord },
      headers: ['Prefer'],
      recover: async (caller, id) =>
        accepted(importView(await imports.read(caller, id)), {
          location: `/api/inventory/imports/${id}`,
        }),
      handle: async (request) => {
        const { caller, query, upload } = request;
        const format = TYPES[upload?.contentType ?? ''] ?? 'ndjson';
        const { state, job } = await imports.receive(
          caller,
          { ...query, format },
          upload?.source ?? Readable.from([]),
        );
        await atEnd(request, job);
        return accepted(
          importView(
            request.prefer.waitMs > 0 ? await imports.read(caller, state.record.id) : state,
          ),
          { location: `/api/inventory/imports/${state.record.id}` },
        );
      },
    }),
    route({
      method: 'GET',
      path: '/api/inventory/imports',
      area,
      permission: 'inventory:read',
      summary: 'List imports, newest first',
      query: ListQuery,
      answers: { 200: listOf(ImportRecord, 'ImportList') },
      handle: ({ caller, query }) =>
        listAnswer('imports', 'imp', query, (page) => imports.list(caller, page), importView),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/imports/{id}',
      area,
      permission: 'inventory:read',
      summary: 'Read an import: how far it is, and how many rows came to what',
      params: OneImport,
      answers: { 200: ImportRecord },
      handle: async ({ caller, params }) => ok(importView(await imports.read(caller, params.id))),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/imports/{id}/rows',
      area,
      permission: 'inventory:read',
      summary: 'List the rows of an import and what came of each, in the order of the file',
      params: OneImport,
      query: RowsQuery,
      answers: { 200: listOf(ImportRow, 'ImportRowList') },
      handle: async ({ caller, params, query: { outcome, limit, cursor } }) => {
        const list = `import:${params.id}`;
        const after = Number(decodeCursor(list, cursor, /^\d{1,9}$/) ?? 0);
        const rows = await imports.rows(caller, params.id, { outcome, after, limit: limit + 1 });
        const items = rows.slice(0, limit);
        return ok({
          items: items.map(rowView),
          nextCursor: rows.length > limit ? encodeCursor(list, String(items.at(-1)?.line)) : null,
        });
      },
    }),
    ...Object.values(RESOURCES).map((resource) => exportRoute(resource, exports)),
  ];
}

const exportRoute = (resource: Resource, exports: InventoryExports): Route =>
  route({
    method: 'GET',
    path: `/api/inventory/${resource.name}/export`,
    area,
    permission: 'inventory:read',
    summary: `All ${resource.name.replaceAll('-', ' ')} as a file that an import takes`,
    query: Type.Object(
      { ...selectionQuery(resource), format: Type.Enum(['csv', 'ndjson'], { default: 'csv' }) },
      closed,
    ),
    answers: { 200: null },
    produces: 'text/csv',
    handle: ({ caller, query, signal }) => {
      const { format, ...filter } = query as Record<string, unknown> & { format: FileFormat };
      const lines = exports.all(
        caller,
        resource.name,
        filterFrom(resource, filter),
        format,
        signal,
      );
      return Promise.resolve(
        streamed(
          CONTENT_TYPES[format],
          Readable.from(lines, { objectMode: false, highWaterMark: 65_536 }),
        ),
      );
    },
  });
