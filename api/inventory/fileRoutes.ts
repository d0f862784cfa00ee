import { Readable } from 'node:stream';
import { Type, type Static, type TSchema } from 'typebox';
import { assertDefined } from '../../domain/shared/assert.ts';
import { JOB_STATUSES } from '../../domain/jobs/jobs.ts';
import { IMPORT_OUTCOMES } from '../../domain/inventory/imports.ts';
import {
  IMPORT_MODES,
  MAX_ATOMIC_ROWS,
  MAX_IMPORT_BYTES,
  MAX_IMPORT_SECONDS,
} from '../../domain/inventory/importLimits.ts';
import { RESOURCE_NAMES } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { InventoryExports } from '../../services/inventory/exports.ts';
import type {
  FileFormat,
  ImportState,
  InventoryImports,
} from '../../services/inventory/imports.ts';
import { MAX_VALUE_LENGTH } from '../../services/inventory/importReport.ts';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Jobs } from '../../services/jobs/jobs.ts';
import { accepted, exportResponse, ok } from '../http/response.ts';
import { waitForJob } from '../jobs/waitForJob.ts';
import { choiceField, flagField, idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { listResponse, listSchema, pageQuery } from '../http/pagination.ts';
import { route, type Route } from '../http/route.ts';
import {
  Actor,
  closed,
  Id,
  JsonObject,
  Nullable,
  Reference,
  referenceTo,
  Timestamp,
} from '../http/schemas.ts';
import { listOf } from './lists.ts';
import { PlanConflictView, PlanErrorView } from './schemas.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { nounOf } from '../../domain/shared/nouns.ts';
import { pluralIdOf } from './pluralIdOf.ts';
import { filterFrom } from './routes.ts';

const tag = 'Inventory';
const FORMAT_BY_CONTENT_TYPE: Readonly<Record<string, FileFormat>> = {
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
};
/** Clients that know one type of bytes only send the last one. */
const EXAMPLES: Readonly<Record<string, string>> = {
  'application/x-ndjson': '{"cidr":"10.0.0.0/16","status":"container"}\n',
  'text/csv': 'cidr,status\n10.0.0.0/16,container\n',
};
const CONTENT_TYPE_BY_FORMAT: Readonly<Record<FileFormat, string>> = {
  csv: 'text/csv',
  ndjson: 'application/x-ndjson',
};

const ImportQuery = Type.Object(
  {
    resource: Type.Optional(
      Type.Enum([...RESOURCE_NAMES], {
        title: 'ResourceName',
        description: 'The resource of all rows. Without it, each line of NDJSON is a mutation.',
      }),
    ),
    dryRun: Type.Boolean({
      default: false,
      description:
        'Report the outcome of each row without writing anything. The job ends as that of the import would.',
    }),
    mode: Type.Enum([...IMPORT_MODES], {
      title: 'ImportMode',
      default: 'each',
      description: `each: the valid rows are written. all: all rows or none, in one transaction of at most ${MAX_ATOMIC_ROWS} rows.`,
    }),
  },
  closed,
);

export const ImportRecord = Type.Object(
  {
    id: Id('imp'),
    resource: Nullable(Type.String()),
    dryRun: Type.Boolean(),
    mode: Type.Enum([...IMPORT_MODES], { title: 'ImportMode' }),
    status: Type.Enum([...JOB_STATUSES], {
      title: 'JobStatus',
      description: 'The status of its job. It fails when no row is imported.',
    }),
    rows: Type.Integer({ description: 'The number of rows of the file.' }),
    done: Type.Integer({ description: 'The number of rows that have an outcome.' }),
    dryRunId: Type.Union([Id('imp'), Type.Null()], {
      description: 'The dry run whose rows it writes; null for a file of its own.',
    }),
    progress: Nullable(
      Type.Object(
        { percent: Type.Number(), message: Nullable(Type.String()) },
        { title: 'ImportProgress', ...closed },
      ),
    ),
    error: Nullable(
      Type.Object(
        { code: Type.String(), message: Type.String() },
        { title: 'ImportError', ...closed },
      ),
    ),
    contentVisible: Type.Boolean({
      description:
        'Whether you see the content of the rows, as the sender of the file and readers of the whole inventory do. Others see outcomes only.',
    }),
    tenantId: Reference('tenants'),
    counts: Type.Object(
      Object.fromEntries(IMPORT_OUTCOMES.map((outcome) => [outcome, Type.Integer()])),
      closed,
    ),
    jobId: referenceTo('jobs', Id('job')),
    workflowId: Type.String(),
    createdBy: Actor(),
    createdAt: Timestamp,
    finishedAt: Nullable(Timestamp),
  },
  { title: 'Import', ...closed },
);

export const ImportRow = Type.Object(
  {
    line: Type.Integer({ description: 'The line in the file, from 1.' }),
    outcome: Nullable(Type.Enum([...IMPORT_OUTCOMES], { title: 'ImportOutcome' })),
    id: Nullable(Type.String()),
    resource: Nullable(Type.String()),
    operation: Nullable(Type.String()),
    label: Type.Union([Type.String(), Type.Null()], {
      description: 'How the row names its record, as it is in the file; null if it does not.',
    }),
    errors: Type.Array(
      Type.Object(
        {
          ...PlanErrorView.properties,
          value: Type.Union([Type.String(), Type.Null()], {
            description: `The value in the file, up to ${MAX_VALUE_LENGTH} characters of it.`,
          }),
        },
        { title: 'ImportRowError', ...closed },
      ),
    ),
    conflicts: Type.Array(PlanConflictView),
    warnings: Type.Array(JsonObject()),
  },
  { title: 'ImportRow', ...closed },
);

const ImportParams = Type.Object({ id: Id('imp') }, closed);
const IMPORTS = defineList({
  name: 'imports',
  id: 'imp',
  item: ImportRecord,
  title: 'ImportList',
  fields: {
    resource: choiceField(RESOURCE_NAMES, {
      title: 'ResourceName',
      nullable: true,
      none: ['none'],
    }),
    dryRun: flagField(),
    mode: choiceField(IMPORT_MODES, { title: 'ImportMode' }),
    createdBy: textField({ facet: true }),
    dryRunId: idField(Id('imp'), { nullable: true, facet: false }),
    createdAt: timeField(),
  },
});
const outcome = Type.Optional(
  Type.Array(Type.Enum([...IMPORT_OUTCOMES], { title: 'ImportOutcome' }), {
    minItems: 1,
    maxItems: IMPORT_OUTCOMES.length,
    description: 'Only rows with one of these outcomes.',
    [COMMA_SEPARATED]: true,
  }),
);
const RowsQuery = Type.Object({ outcome, ...pageQuery }, closed);
const ReportQuery = Type.Object(
  { outcome, format: Type.Enum(['csv', 'ndjson'], { default: 'csv' }) },
  closed,
);

type Deps = {
  imports: InventoryImports;
  exports: InventoryExports;
  jobs: Jobs;
  slots: { exports: Slots };
};

const importView = ({
  counts,
  createdAt,
  finishedAt,
  error,
  ...state
}: ImportState): Static<typeof ImportRecord> => ({
  ...state,
  error: error && { code: error.code, message: error.message },
  finishedAt: finishedAt?.toISOString() ?? null,
  counts: Object.fromEntries(IMPORT_OUTCOMES.map((outcome) => [outcome, counts[outcome] ?? 0])),
  workflowId: jobWorkflowId(state.jobId),
  createdAt: createdAt.toISOString(),
});

/** Imports and exports of files. */
export function inventoryFileRoutes({ imports, exports, jobs, slots }: Deps): Route[] {
  const atEnd = waitForJob(jobs, 'inventory:write');
  return [
    route({
      method: 'POST',
      path: '/api/inventory/import',
      tag,
      operationId: 'importInventory',
      permission: 'inventory:write',
      summary: 'Import a CSV or NDJSON file as a job',
      description:
        'Rows with an `id` update that record, all others create one. A row without differences is `unchanged`. The job fails when no row is imported: every row is invalid or in conflict, or one is in the mode `all`. The other rows are then `skipped`.',
      query: ImportQuery,
      upload: {
        examples: EXAMPLES,
        limitBytes: MAX_IMPORT_BYTES,
        maxSeconds: MAX_IMPORT_SECONDS,
      },
      responses: { 202: ImportRecord },
      headers: ['Prefer'],
      replayResponse: async (caller, id) =>
        accepted(`/api/inventory/imports/${id}`, importView(await imports.read(caller, id))),
      handle: async (request) => {
        const { caller, query, upload } = request;
        const format = FORMAT_BY_CONTENT_TYPE[upload?.contentType ?? ''] ?? 'ndjson';
        const { state, job } = await imports.receive(
          caller,
          { ...query, format },
          upload?.source ?? Readable.from([]),
          request.signal,
        );
        await atEnd(request, job);
        return accepted(
          `/api/inventory/imports/${state.id}`,
          importView(request.prefer.waitMs > 0 ? await imports.read(caller, state.id) : state),
        );
      },
    }),
    route({
      method: 'GET',
      path: '/api/inventory/imports',
      tag,
      operationId: 'listImports',
      permission: 'inventory:read',
      summary: 'List imports',
      query: IMPORTS.query,
      responses: { 200: IMPORTS.schema },
      handle: ({ caller, query }) =>
        IMPORTS.respond(query, (request) => imports.list(caller, request), importView),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/imports/{id}',
      tag,
      operationId: 'getImport',
      permission: 'inventory:read',
      summary: 'Get the progress of an import and the number of rows for each outcome',
      params: ImportParams,
      responses: { 200: ImportRecord },
      handle: async ({ caller, params }) => ok(importView(await imports.read(caller, params.id))),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/imports/{id}/rows',
      tag,
      operationId: 'listImportRows',
      permission: 'inventory:read',
      summary: 'List the rows of an import with their outcomes, in the order of the file',
      params: ImportParams,
      query: RowsQuery,
      responses: { 200: listSchema(ImportRow, 'ImportRowList') },
      handle: ({ caller, params: { id }, query: { outcome: outcomes, ...query } }) =>
        listResponse(
          `import:${id}`,
          /^\d{1,9}$/,
          query,
          ({ limit, after = 0 }) =>
            imports.rows(caller, id, { outcomes, after: Number(after), limit }),
          (row) => row,
        ),
    }),
    reportRoute(imports, slots.exports),
    applyRoute(imports, jobs),
    ...Object.values(RESOURCES).map((resource) => exportRoute(resource, exports, slots.exports)),
  ];
}

const reportRoute = (imports: InventoryImports, slots: Slots): Route =>
  route({
    method: 'GET',
    path: '/api/inventory/imports/{id}/report',
    tag,
    operationId: 'exportImportReport',
    permission: 'inventory:read',
    summary: 'Export the rows of an import with their outcomes',
    description: 'CSV has a line for each error, conflict and warning, and one for each other row.',
    params: ImportParams,
    query: ReportQuery,
    expensiveRead: { hasOwnSlots: true },
    responses: { 200: null },
    produces: Object.values(CONTENT_TYPE_BY_FORMAT),
    recheckAccess: ({ caller, params: { id } }) => imports.read(caller, id),
    handle: async ({ caller, params: { id }, query: { outcome: outcomes, format }, signal }) => {
      const { text, recheck } = await imports.report(caller, id, { outcomes, format }, signal);
      return exportResponse(slots, caller, text, {
        recheck,
        contentType: CONTENT_TYPE_BY_FORMAT[format],
        filename: `${id}.${format}`,
      });
    },
  });

const applyRoute = (imports: InventoryImports, jobs: Jobs): Route => {
  const atEnd = waitForJob(jobs, 'inventory:write');
  return route({
    method: 'POST',
    path: '/api/inventory/imports/{id}/apply',
    tag,
    operationId: 'applyDryRun',
    permission: 'inventory:write',
    summary: 'Import the rows of a dry run, exactly as they were checked',
    description:
      'Creates another import, with the mode of the dry run. Its rows are planned again: records may have changed since. A dry run whose rows an import writes or has written is refused.',
    params: ImportParams,
    responses: { 202: ImportRecord },
    headers: ['Prefer'],
    replayResponse: async (caller, id) =>
      accepted(`/api/inventory/imports/${id}`, importView(await imports.read(caller, id))),
    handle: async (request) => {
      const { caller, params, prefer, signal } = request;
      const { state, job } = await imports.apply(caller, params.id, signal);
      await atEnd(request, job);
      return accepted(
        `/api/inventory/imports/${state.id}`,
        importView(prefer.waitMs > 0 ? await imports.read(caller, state.id) : state),
      );
    },
  });
};

/** The parameters of a list for its order and its fields. */
function orderOf(resource: Resource): { sort: TSchema; fields: TSchema } {
  const { sort, fields } = listOf(resource).query.properties as Record<string, TSchema>;
  return { sort: assertDefined(sort, 'sort'), fields: assertDefined(fields, 'fields') };
}

type ExportQuery = Record<string, unknown> & {
  format: FileFormat;
  sort?: string;
  fields?: string[];
};

const exportRoute = (resource: Resource, exports: InventoryExports, slots: Slots): Route =>
  route({
    method: 'GET',
    path: `/api/inventory/${resource.name}/export`,
    tag,
    operationId: `export${pluralIdOf(resource)}`,
    permission: 'inventory:read',
    summary: `Export ${nounOf(resource.kind, 2)} in the format of an import`,
    query: Type.Object(
      {
        ...listOf(resource).filters,
        ...orderOf(resource),
        format: Type.Enum(['csv', 'ndjson'], { default: 'csv' }),
      },
      closed,
    ),
    expensiveRead: { hasOwnSlots: true },
    responses: { 200: null },
    produces: Object.values(CONTENT_TYPE_BY_FORMAT),
    keepsScope: true,
    handle: ({ caller, query, signal }) => {
      const { format, sort, fields, ...filter } = query as ExportQuery;
      const list = listOf(resource);
      const request = {
        filter: filterFrom(resource, filter),
        where: list.conditionsFrom(filter),
        sort: list.sortFrom(sort),
        fields,
        format,
      };
      const lines = exports.stream(caller, resource.name, request, signal);
      return Promise.resolve(
        exportResponse(slots, caller, lines, {
          contentType: CONTENT_TYPE_BY_FORMAT[format],
          filename: `${resource.name}.${format}`,
        }),
      );
    },
  });
