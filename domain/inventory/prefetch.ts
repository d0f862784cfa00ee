import { bitsOf, formatBlock, formatHost, isBlock, parseBlock, parseHost } from './cidr.ts';
import type { Mutation } from './planning.ts';
import type { ResourceName } from './names.ts';
import type { Resource } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { GLOBAL_VRF, type Need } from './planSnapshot.ts';

/** True for what can be an id: the database need not be asked for anything else. */
export const isPlainId = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 100 && /^[\x21-\x7e]+$/.test(value);

/** An address without a length names a record whatever length that has. */
export const lookedUpBy = (field: string, value: string): string =>
  field === 'address' && !value.includes('/') ? 'host' : field;

const textOf = (value: unknown): string | undefined => (isPlainId(value) ? value : undefined);

/** True for a value that the schema of some field lets through. */
const isPlain = (value: unknown): boolean =>
  typeof value === 'string'
    ? value.length <= 255 && !value.includes('\0') && value.isWellFormed()
    : typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31;

const plainOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The VRF that a request names; undefined when it does so by another field than the id. */
export function vrfAsked(record: Readonly<Record<string, unknown>>): string | undefined {
  return record.vrfId === undefined || record.vrfId === null ? GLOBAL_VRF : textOf(record.vrfId);
}

/**
 * What planning a mutation will most likely need, read off the request: looked up at once it saves a round trip for
 * each. What is forgotten here is found by planning.
 */
export function hintsOf({ resource, operation, record }: Mutation): Need[] {
  const declared = Object.hasOwn(RESOURCES, resource)
    ? RESOURCES[resource as ResourceName]
    : undefined;
  if (!declared || typeof record !== 'object' || record === null) return [];
  const fields = record as Record<string, unknown>;
  const id = textOf(fields.id);
  const own: Need[] = id === undefined ? [] : [{ kind: 'row', resource: declared.name, id }];
  if (operation === 'delete') return own;
  return [
    ...own,
    { kind: 'rows', resource: 'custom-fields', fields: ['resource'], values: [declared.name] },
    ...referenced(declared, fields),
    ...(operation === 'create'
      ? [...twins(declared, fields), ...surroundings(declared, fields)]
      : []),
  ];
}

function referenced(
  { fields: declared }: Resource,
  fields: Readonly<Record<string, unknown>>,
): Need[] {
  return Object.entries(declared).flatMap(([name, { reference, derived }]): Need[] => {
    const value = fields[name];
    if (reference === undefined || derived) return [];
    if (isPlainId(value)) return [{ kind: 'row', resource: reference, id: value }];
    const [field, by] =
      typeof value === 'object' && value !== null ? (Object.entries(value)[0] ?? []) : [];
    if (field === undefined || !isPlain(by) || !RESOURCES[reference].names.includes(field))
      return [];
    const text = typeof by === 'string' ? by : '';
    const canonical = RESOURCES[reference].fields[field]?.canonical?.(text) ?? text;
    return typeof canonical === 'string'
      ? [
          {
            kind: 'rows',
            resource: reference,
            fields: [lookedUpBy(field, canonical)],
            values: [canonical],
            most: 100,
          },
        ]
      : [];
  });
}

function twins(
  { name, unique, fields: declared }: Resource,
  fields: Readonly<Record<string, unknown>>,
): Need[] {
  return unique.flatMap((of): Need[] => {
    const values = of.map((field) => fields[field]);
    const fits = values.every(
      (value, i) =>
        isPlain(value) &&
        (typeof value === 'number') === (declared[of[i] ?? '']?.type === 'integer'),
    );
    return fits ? [{ kind: 'rows', resource: name, fields: of, values }] : [];
  });
}

function surroundings({ name }: Resource, fields: Readonly<Record<string, unknown>>): Need[] {
  const vrf = vrfAsked(fields);
  if (vrf === undefined) return [];
  if (name === 'prefixes') {
    const block = parseBlock(plainOf(fields.cidr));
    return isBlock(block) ? [{ kind: 'around', vrf, cidr: formatBlock(block) }] : [];
  }
  const host = parseHost(
    plainOf(name === 'ip-ranges' ? fields.startAddress : fields.address).split('/')[0] ?? '',
  );
  if (!host || (name !== 'ip-ranges' && name !== 'ip-addresses')) return [];
  const text = formatHost(host.family, host.value);
  const around: Need = { kind: 'around', vrf, cidr: `${text}/${bitsOf(host.family)}` };
  return name === 'ip-ranges'
    ? [around]
    : [
        around,
        { kind: 'rows', resource: 'ip-addresses', fields: ['vrfKey', 'host'], values: [vrf, text] },
      ];
}
