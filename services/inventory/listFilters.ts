import {
  customFieldTypes,
  findIdsBy,
  type CustomFieldTypes,
  type RecordFilter,
} from '../../db/inventory/records.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { columnKindOf } from '../../domain/inventory/lists.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { parseDecimal } from '../../domain/shared/decimals.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { unicodeForms } from '../../domain/shared/unicodeForms.ts';
import type { ListCondition } from '../../domain/shared/lists.ts';

/** The filters of a list besides comparisons with fields, as a caller names them. */
export type RecordFilterRequest = Omit<RecordFilter, 'customFields'> & {
  /** References by a field of the record that they refer to, such as its name. */
  references?: readonly { field: string; by: string; values: readonly string[] }[];
  /** Values of custom fields as text, by name; those that they must not have by `name.not`. */
  customFields?: Readonly<Record<string, readonly string[]>> | undefined;
};

/** Most records that the names of a filter may mean. */
const MAX_NAMED = 100;

const NEGATED = /\.not$/;

/**
 * Finds what the names in a filter mean to a reader in `scope`. Error: `invalid_request` for unknown
 * custom fields, values that they cannot have, and names of too many records.
 */
export async function resolveFilter(
  db: Knex,
  resource: Resource,
  scope: Scope,
  { references = [], customFields = {}, ...filter }: RecordFilterRequest,
): Promise<{ filter: RecordFilter; where: ListCondition[] }> {
  const where: ListCondition[] = [];
  for (const reference of references)
    where.push(await resolveReference(db, resource, scope, reference));
  const asked = Object.entries(customFields).map(([parameter, texts]) => ({
    name: parameter.replace(NEGATED, ''),
    isNegated: parameter.endsWith('.not'),
    parameter,
    texts,
  }));
  if (asked.length === 0) return { filter, where };
  const names = asked.map(({ name }) => name);
  const types = await customFieldTypes(db, resource, scope, names);
  const resolved = asked.map(({ name, isNegated, parameter, texts }) => ({
    name,
    isNegated,
    values: texts
      .flatMap(unicodeForms)
      .flatMap((text) => storedValues(resource, parameter, types.get(name), text)),
  }));
  return { filter: { ...filter, customFields: resolved }, where };
}

async function resolveReference(
  db: Knex,
  resource: Resource,
  scope: Scope,
  { field, by, values }: { field: string; by: string; values: readonly string[] },
): Promise<ListCondition> {
  const declared = assertDefined(resource.fields[field], `field ${field}`);
  const target = RESOURCES[assertDefined(declared.reference, `reference ${field}`)];
  const ids = await findIdsBy(db, target, scope, {
    field: by,
    values: values.flatMap(unicodeForms),
    limit: MAX_NAMED + 1,
  });
  if (ids.length > MAX_NAMED)
    throw invalidField(
      'query',
      `/${field}.${by}`,
      'too_many',
      `is that of more than ${MAX_NAMED} ${target.name}; filter by ${field}`,
    );
  return { ...columnKindOf(resource, field), operator: 'in', values: ids };
}

/**
 * The stored values that a text can mean; null for none. As with the choices of fields, `none` means
 * a choice of this name where there is one. Error: `invalid_request`.
 */
function storedValues(
  resource: Resource,
  parameter: string,
  known: CustomFieldTypes | undefined,
  text: string,
): unknown[] {
  const pointer = `/customFields/${parameter}`;
  if (!known)
    throw invalidField(
      'query',
      pointer,
      'unknown_field',
      `is not a custom field of ${resource.name}`,
    );
  const { types, hasNone } = known;
  if (text === 'none' && !hasNone) return [null];
  const values = types.flatMap((type) => storedValue(type, text));
  if (values.length === 0)
    throw invalidField('query', pointer, 'type', `must be of the type ${types.join(' or ')}`);
  return values;
}

function storedValue(type: string, text: string): unknown[] {
  if (type === 'choices') return [[text]];
  if (type === 'boolean') return ['true', 'false'].includes(text) ? [text === 'true'] : [];
  if (type !== 'integer' && type !== 'number') return [text];
  return [parseDecimal(text) ?? []].flat();
}
