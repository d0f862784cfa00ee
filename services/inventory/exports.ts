import { stringify } from 'csv-stringify/sync';
import type { Caller } from '../../domain/shared/caller.ts';
import { cellOfText } from '../../domain/inventory/imports.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import {
  pageOf,
  type ListCondition,
  type ListKey,
  type ListSort,
} from '../../domain/shared/lists.ts';
import type { FileFormat } from './imports.ts';
import { computeFor, tenantKey } from '../../platform/connectionUser.ts';
import { tenantActivity } from '../../platform/tenantActivity.ts';
import { createPause } from '../../platform/turns.ts';
import type { InventoryRecords, RecordFilterRequest } from './records.ts';

export type InventoryExports = ReturnType<typeof createInventoryExports>;

/** The number of records that are read together: fewer while other tenants are active. */
const PAGE_SIZE = 1_000;
const SMALL_PAGE_SIZE = 100;

/** The columns of a file: all, or the id and those that were chosen. */
const columnsOf = ({ fields }: Resource, chosen: readonly string[] | undefined): string[] =>
  chosen
    ? [...new Set(['id', ...chosen])]
    : ['id', ...Object.keys(fields), 'createdAt', 'updatedAt', 'version'];

/** Converts a value to a cell as imports read it: lists and objects as JSON, numbers as they are. */
function cellOf(value: unknown): unknown {
  if (typeof value === 'string') return cellOfText(value);
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return typeof value === 'boolean' ? String(value) : value;
}

const pick = (row: Row, columns: readonly string[]): object =>
  Object.fromEntries(columns.map((column) => [column, row[column]]));

const toText = (
  format: FileFormat,
  columns: readonly string[] | undefined,
  rows: readonly Row[],
) =>
  format === 'ndjson'
    ? rows.map((row) => `${JSON.stringify(columns ? pick(row, columns) : row)}\n`).join('')
    : stringify(rows.map((row) => (columns ?? []).map((column) => cellOf(row[column]))));

/** What an export has: the records of a list in its order, and some of their fields. */
export type ExportRequest = {
  filter: RecordFilterRequest;
  where: readonly ListCondition[];
  sort: ListSort | undefined;
  /** Undefined for all. */
  fields: readonly string[] | undefined;
  format: FileFormat;
};

/** Exports of lists in the format of imports. */
export const createInventoryExports = ({ records }: { records: InventoryRecords }) => ({
  /** Streams all matching records inside the caller's scope as text. */
  async *stream(
    caller: Caller,
    name: ResourceName,
    { filter, where, sort, fields, format }: ExportRequest,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const resource = RESOURCES[name];
    const columns = format === 'csv' || fields ? columnsOf(resource, fields) : undefined;
    // Sent with the first page, so that an error of the query comes before the first byte.
    let header = format === 'csv' ? stringify([columns ?? []]) : '';
    let after: ListKey | undefined;
    do {
      signal.throwIfAborted();
      const pause = createPause({ signal, isPatient: true });
      const { items, next } = await records.list(caller, name, filter, {
        ...pageOf(
          tenantActivity.othersAreActive(tenantKey(caller.tenantId)) ? SMALL_PAGE_SIZE : PAGE_SIZE,
          after,
        ),
        where,
        sort,
      });
      const text = computeFor(() => toText(format, columns, items));
      await pause();
      yield header + text;
      header = '';
      after = next ?? undefined;
    } while (after);
  },
});
