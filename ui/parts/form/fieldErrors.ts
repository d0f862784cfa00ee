import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import type { FieldError } from '../problems.ts';

const isUnder = (pointer: string, prefix: string): boolean =>
  pointer === prefix || pointer.startsWith(`${prefix}/`);

/** What is wrong below a field, with pointers that start there. */
export const errorsUnder = (errors: readonly FieldError[], prefix: string): FieldError[] =>
  errors
    .filter(({ pointer }) => isUnder(pointer, prefix))
    .map(({ pointer, detail }) => ({ pointer: pointer.slice(prefix.length), detail }));

/** What is wrong with one field, as a sentence; undefined if nothing is. */
export function errorAt(errors: readonly FieldError[], pointer: string): string | undefined {
  const own = errors.filter((error) => error.pointer === pointer).map(({ detail }) => detail);
  return own.length === 0 ? undefined : own.join('; ');
}

/** What is wrong with fields that a form does not show: it is shown above the form. */
export const otherErrors = (
  errors: readonly FieldError[],
  shown: readonly string[],
): FieldError[] =>
  errors.filter(({ pointer }) => !shown.some((prefix) => isUnder(pointer, prefix)));

/** A payload is an object, whatever was typed. */
export const objectOf = (value: unknown): Record<string, unknown> =>
  isJsonObject(value) ? { ...value } : {};
