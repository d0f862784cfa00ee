import { expect } from '@jest/globals';

type KindOf<V> = null extends V
  ? 'nullable'
  : V extends string
    ? 'string'
    : V extends number
      ? 'number'
      : V extends boolean
        ? 'boolean'
        : V extends Date
          ? 'date'
          : 'json';

/**
 * The columns of a row type with the kind of each. The compiler checks a shape against the type,
 * and `expectRowShape` checks it against a row that PostgreSQL returned. Together they check the
 * type of a raw query, which is otherwise only a promise.
 */
export type RowShape<R> = { [K in keyof R]-?: KindOf<R[K]> };

function kindOf(value: unknown): string {
  if (value instanceof Date) return 'date';
  return typeof value === 'object' ? 'json' : typeof value;
}

/** Fails unless `row` has exactly the columns of `shape`, with values of their kinds. */
export function expectRowShape<R extends object>(row: R | undefined, shape: RowShape<R>): void {
  expect(row).toBeDefined();
  const actual: Record<string, unknown> = { ...row };
  expect(Object.keys(actual).sort()).toEqual(Object.keys(shape).sort());
  for (const [column, kind] of Object.entries<string>(shape))
    if (kind !== 'nullable') expect([column, kindOf(actual[column])]).toEqual([column, kind]);
}
