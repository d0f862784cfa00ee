import type { FieldKind, ListField } from '../shared/lists.ts';
import { assertDefined } from '../shared/assert.ts';
import type { Field } from './fields.ts';
import type { Resource } from './resource.ts';

const KINDS: Readonly<Partial<Record<Field['type'], FieldKind>>> = {
  text: 'text',
  reference: 'text',
  integer: 'integer',
  number: 'number',
  boolean: 'boolean',
  network: 'network',
  address: 'address',
};

/** Resources with many records: their lists sort by indexes only, the `sortFields`. */
const LARGE: ReadonlySet<string> = new Set([
  'devices',
  'interfaces',
  'cables',
  'vlans',
  'prefixes',
  'ip-ranges',
  'ip-addresses',
]);

/** Whether lists of a resource sort by a field. */
export const isSorted = ({ name, sortFields }: Resource, field: string): boolean =>
  sortFields.includes(field) || !LARGE.has(name);

/** How lists compare the values of a field; undefined for lists and objects. */
export const kindOf = ({ type }: Field): FieldKind | undefined => KINDS[type];

/** A field of a resource as lists know it. */
export function columnKindOf({ fields }: Resource, name: string): ListField {
  const field = assertDefined(fields[name], `field ${name}`);
  return { field: name, kind: kindOf(field) ?? 'text', nullable: field.nullable };
}
