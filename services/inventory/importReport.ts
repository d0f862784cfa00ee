import { excerpt } from '../../domain/shared/excerpt.ts';
import { stringify } from 'csv-stringify/sync';
import type { ReportedRow } from '../../db/inventory/importRows.ts';
import { cellOfText } from '../../domain/inventory/imports.ts';
import { isResourceName } from '../../domain/inventory/names.ts';
import type { PlanConflict, PlanError, PlanWarning } from '../../domain/inventory/planning.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { unescapePointer } from '../../domain/shared/jsonPointer.ts';

/** The number of characters of a value that a report shows. */
export const MAX_VALUE_LENGTH = 200;

/** The message of a finding for who may not see what the file has. */
const HIDDEN_MESSAGE = 'The message is for the sender of the file.';

/** A row of an import with its outcome. What the file has is null for who may not see it. */
export type ImportRowReport = {
  line: number;
  outcome: string | null;
  id: string | null;
  resource: string | null;
  operation: string | null;
  label: string | null;
  errors: (PlanError & { value: string | null })[];
  conflicts: PlanConflict[];
  warnings: PlanWarning[];
};

type Findings = { errors: PlanError[]; conflicts: PlanConflict[]; warnings: PlanWarning[] };

const textOf = (value: unknown): string | null => {
  if (value === undefined) return null;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return excerpt(text, MAX_VALUE_LENGTH + 1);
};

/** The value at a JSON Pointer (RFC 6901); undefined if there is none. */
function valueAt(record: unknown, pointer: string): unknown {
  let value = record;
  for (const part of pointer.split('/').slice(1)) {
    const name = unescapePointer(part);
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
      return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** How a row names its record. A file of mutations may name a resource that there is not. */
function labelOf(resource: string, record: unknown): string | null {
  const { labelField } = isResourceName(resource) ? RESOURCES[resource] : { labelField: 'id' };
  return textOf(valueAt(record, `/${labelField}`)) ?? textOf(valueAt(record, '/id'));
}

/** A stored row as a report has it. */
export function reportedRow(row: ReportedRow, isContentVisible: boolean): ImportRowReport {
  const { errors = [], conflicts = [], warnings = [] } = (row.report ?? {}) as Partial<Findings>;
  const { line, outcome, record_id: id } = row;
  const { resource, operation, record } = row.mutation;
  if (!isContentVisible)
    return {
      ...{ line, outcome, id: null, resource: null, operation: null, label: null },
      errors: errors.map((error) => ({ ...withoutContent(error), value: null })),
      conflicts: conflicts.map((conflict) => ({
        ...withoutContent(conflict),
        ...{ resource: null, id: null },
      })),
      warnings: warnings.map(withoutContent),
    };
  return {
    ...{ line, outcome, id, resource, operation, label: labelOf(resource, record) },
    errors: errors.map((error) => ({ ...error, value: textOf(valueAt(record, error.pointer)) })),
    conflicts,
    warnings,
  };
}

/**
 * A finding for who may not see what the file has. Its message quotes values of the file and suggests
 * others, and may name records that only the sender may read.
 */
const withoutContent = <T extends string | null>({
  pointer,
  code,
}: {
  pointer: T;
  code: string;
}) => ({ pointer, code, message: HIDDEN_MESSAGE });

const COLUMNS = [
  'line',
  'outcome',
  'id',
  'resource',
  'operation',
  'label',
  'finding',
  'field',
  'value',
  'code',
  'message',
] as const;

type Line = Partial<Record<(typeof COLUMNS)[number], string | number | null>>;

const finding = (
  kind: string,
  { pointer, code, message }: { pointer: string | null; code: string; message: string },
): Line => ({ finding: kind, field: pointer?.slice(1) ?? null, code, message });

/** The lines of a row: one for each finding, or one. */
function linesOf({ errors, conflicts, warnings, ...row }: ImportRowReport): Line[] {
  const findings = [
    ...errors.map((error) => ({ ...finding('error', error), value: error.value })),
    ...conflicts.map((conflict) => finding('conflict', conflict)),
    ...warnings.map((warning) => finding('warning', warning)),
  ];
  return (findings.length > 0 ? findings : [{}]).map((line) => ({ ...row, ...line }));
}

const cellOf = (value: string | number | null | undefined): string | number =>
  typeof value === 'string' ? cellOfText(value) : (value ?? '');

/** Rows of a report as text. */
export const reportText = (
  format: 'csv' | 'ndjson',
  rows: readonly ImportRowReport[],
  isFirst: boolean,
): string =>
  format === 'ndjson'
    ? rows.map((row) => `${JSON.stringify(row)}\n`).join('')
    : stringify([
        ...(isFirst ? [[...COLUMNS]] : []),
        ...rows.flatMap(linesOf).map((line) => COLUMNS.map((column) => cellOf(line[column]))),
      ]);
