import type { ImportRow } from './importQueries.ts';

/** A finding of a row: an error in a field, a conflict with a record, or a warning. */
export type Finding = {
  kind: 'error' | 'conflict' | 'warning';
  /** The field, or nothing. */
  field: string;
  /** The value in the file; null where it is not known. */
  value: string | null;
  code: string;
  message: string;
  /** The record that is in conflict, if the sender may read it. */
  record: { id: string; resource: string } | null;
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const fieldOf = (pointer: unknown): string => textOf(pointer).slice(1);

/** The findings of a row, the worst first. */
export const findingsOf = ({ errors, conflicts, warnings }: ImportRow): Finding[] => [
  ...errors.map(({ pointer, value, code, message }): Finding => ({
    ...{ kind: 'error', field: fieldOf(pointer), value, code, message, record: null },
  })),
  ...conflicts.map(({ pointer, code, message, resource, id }): Finding => ({
    ...{ kind: 'conflict', field: fieldOf(pointer), value: null, code, message },
    record: id === null || resource === null ? null : { id, resource },
  })),
  ...warnings.map((warning): Finding => ({
    ...{ kind: 'warning', field: fieldOf(warning.pointer), value: null, record: null },
    ...{ code: textOf(warning.code), message: textOf(warning.message) },
  })),
];
