import { stringify } from 'csv-stringify/sync';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { FileFormat } from './imports.ts';
import type { InventoryRecords, RecordFilter, RecordKey } from './records.ts';

export type InventoryExports = ReturnType<typeof createInventoryExports>;

const READ_AT_ONCE = 1_000;

const columnsOf = ({ fields }: Resource): string[] => [
  'id',
  ...Object.keys(fields),
  'createdAt',
  'updatedAt',
  'version',
];

/** A value as an import reads it: lists and objects as JSON. */
const cellOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? JSON.stringify(value)
    : typeof value === 'boolean'
      ? String(value)
      : value;

const toText = (resource: Resource, format: FileFormat, rows: readonly Row[]): string =>
  format === 'ndjson'
    ? rows.map((row) => `${JSON.stringify(row)}\n`).join('')
    : stringify(rows.map((row) => columnsOf(resource).map((column) => cellOf(row[column]))));

/** Whole lists as files of the shape that an import takes. */
export const createInventoryExports = ({ records }: { records: InventoryRecords }) => ({
  /** Every record inside the caller's scope that the filter lets through, newest first, as text in pieces. */
  async *all(
    caller: Caller,
    name: ResourceName,
    filter: RecordFilter,
    format: FileFormat,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const resource = RESOURCES[name];
    if (format === 'csv') yield stringify([columnsOf(resource)]);
    let after: RecordKey | undefined;
    do {
      signal.throwIfAborted();
      const { items, next } = await records.list(caller, name, filter, {
        sort: undefined,
        after,
        limit: READ_AT_ONCE,
      });
      yield toText(resource, format, items);
      after = next ?? undefined;
    } while (after);
  },
});
