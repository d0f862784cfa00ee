import { Type, type TSchemaOptions } from 'typebox';
import type { IdKind } from '../../platform/ids.ts';

/** An id made by Holdfast. */
export const Id = (kind: IdKind) =>
  Type.String({
    pattern: `^${kind}_[0-9a-z]{26}$`,
    examples: [`${kind}_01jd0cmxk5e5v8kyzwq0q8s3rt`],
  });

const NEVER = '\\u0000-\\u001f\\u007f\\ud800-\\udfff';

/** A name or an id of somebody else's making: no control characters, no half of a character, no blank at an end. */
export const Name = (options: TSchemaOptions = {}) =>
  Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: `^[^${NEVER} ](?:[^${NEVER}]*[^${NEVER} ])?$`,
    ...options,
  });

/** RFC 3339. */
export const Timestamp = Type.String({
  format: 'date-time',
  examples: ['2026-11-21T09:30:00.000Z'],
});

export const Nullable = <S extends Parameters<typeof Type.Union>[0][number]>(schema: S) =>
  Type.Union([schema, Type.Null()]);
