import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import { isSameValue } from '../../parts/diff/change.ts';

type Values = Record<string, unknown>;

/** A field as the description of its resource has it. */
type Field = { name: string; type: string; nullable: boolean; default?: unknown };

type Described = { fields: readonly Field[] };

/** Custom fields have a form of their own, since they depend on the tenant. */
export const CUSTOM = 'customFields';

/** What clears a field. Null would mean that a field that cannot be null is not given. */
export function emptyValue({ nullable, type, default: initial }: Field): unknown {
  if (nullable) return null;
  return initial ?? (type === 'texts' ? [] : '');
}

const objectAt = (values: Values, name: string): Values => {
  const value = values[name];
  return isJsonObject(value) ? { ...value } : {};
};

/** The names and values that differ; null for those that are taken away. */
function differences(before: Values, after: Values): Values {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Object.fromEntries(
    [...names]
      .filter((name) => !isSameValue(before[name] ?? null, after[name] ?? null))
      .map((name) => [name, after[name] ?? null]),
  );
}

/** The values, with what clears a field instead of none. */
const withEmptied = ({ fields }: Described, values: Values): Values => ({
  ...values,
  ...Object.fromEntries(
    fields.map((field) => [field.name, values[field.name] ?? emptyValue(field)]),
  ),
});

/** What a change of a record sends: fields that differ. Others may change the rest at the same time. */
export function changesOf(resource: Described, before: Values, after: Values): Values {
  const { [CUSTOM]: _custom, ...changes } = differences(
    withEmptied(resource, before),
    withEmptied(resource, after),
  );
  const custom = differences(objectAt(before, CUSTOM), objectAt(after, CUSTOM));
  return Object.keys(custom).length === 0 ? changes : { ...changes, [CUSTOM]: custom };
}
