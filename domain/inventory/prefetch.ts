import { PLATFORM } from '../access/scope.ts';
import { addressBits, formatBlock, formatHost, isBlock, parseBlock, parseHost } from './cidr.ts';
import type { Mutation } from './planning.ts';
import { isResourceName, type ResourceName } from './names.ts';
import type { Resource } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { GLOBAL_VRF, type DataNeed, type NamedLookup, type PlanSnapshot } from './planSnapshot.ts';

/** True when a value has the form of an id; other values cannot exist in the database. */
export const isPlainId = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 100 && /^[\x21-\x7e]+$/.test(value);

/** The field to search a value by. An address without a length matches any length. */
export const lookupFieldFor = (field: string, value: string): string =>
  field === 'address' && !value.includes('/') ? 'host' : field;

const asPlainId = (value: unknown): string | undefined => (isPlainId(value) ? value : undefined);

/** True for a value that the schema of some field accepts. */
const isLookupValue = (value: unknown): boolean =>
  typeof value === 'string'
    ? value.length <= 255 && !value.includes('\0') && value.isWellFormed()
    : typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31;

const stringOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The key of the VRF that a request names by id; undefined when it names it by name. */
export function requestedVrf(record: Readonly<Record<string, unknown>>): string | undefined {
  return record.vrfId === undefined || record.vrfId === null ? GLOBAL_VRF : asPlainId(record.vrfId);
}

/**
 * The data that planning a mutation is likely to need, derived from the request, so that one round
 * trip loads it. Planning requests whatever is missing.
 */
export function prefetchNeeds(
  { resource, operation, record }: Mutation,
  callerTenant: string,
): DataNeed[] {
  const declared = isResourceName(resource) ? RESOURCES[resource] : undefined;
  if (!declared || typeof record !== 'object' || record === null) return [];
  const fields = record as Record<string, unknown>;
  const id = asPlainId(fields.id);
  const ownRecord: DataNeed[] =
    id === undefined ? [] : [{ kind: 'row', resource: declared.name, id }];
  if (operation === 'delete')
    return id === undefined
      ? ownRecord
      : [...ownRecord, { kind: 'fact', name: 'legalHolds', id: `${declared.name}/${id}` }];
  return [
    ...ownRecord,
    ...definitionNeeds(declared, fields, callerTenant),
    ...referenceNeeds(declared, fields, callerTenant),
    ...(operation === 'create'
      ? [
          ...duplicateLookups(declared, fields, callerTenant),
          ...neighbours(declared, fields, callerTenant),
        ]
      : []),
  ];
}

/** Definitions of custom fields of the platform, and of the tenant that the record is likely to have. */
function definitionNeeds(
  { name, scopeKind }: Resource,
  { id, tenantId }: Readonly<Record<string, unknown>>,
  callerTenant: string,
): DataNeed[] {
  const named = asPlainId(scopeKind === 'isTenant' ? id : tenantId);
  return [...new Set([PLATFORM, named ?? callerTenant])].map((tenant) => ({
    kind: 'rows',
    resource: 'custom-fields',
    fields: ['tenantId', 'resource'],
    values: [tenant, name],
  }));
}

function referenceNeeds(
  { fields: declared }: Resource,
  fields: Readonly<Record<string, unknown>>,
  callerTenant: string,
): DataNeed[] {
  const tenantId = tenantFor(fields, callerTenant);
  return Object.entries(declared).flatMap(([name, { reference, derived }]): DataNeed[] => {
    const value = fields[name];
    if (reference === undefined || derived) return [];
    if (isPlainId(value)) return [{ kind: 'row', resource: reference, id: value }];
    const lookup = lookupByName(reference, value, tenantId);
    return lookup ? [{ kind: 'named', ...lookup }] : [];
  });
}

/** The lookup of a reference such as `{ "name": "ams1" }`; undefined for any other value. */
function lookupByName(
  reference: ResourceName,
  value: unknown,
  tenantId: string,
): NamedLookup | undefined {
  const [field, by] =
    typeof value === 'object' && value !== null ? (Object.entries(value)[0] ?? []) : [];
  if (
    field === undefined ||
    !isLookupValue(by) ||
    !RESOURCES[reference].lookupFields.includes(field)
  )
    return undefined;
  const text = typeof by === 'string' ? by : '';
  const canonical = RESOURCES[reference].fields[field]?.canonical?.(text) ?? text;
  if (typeof canonical !== 'string') return undefined;
  const searched = lookupFieldFor(field, canonical);
  return { resource: reference, field: searched, value: canonical, tenantId };
}

/** The tenant that a record is likely to have. */
const tenantFor = (fields: Readonly<Record<string, unknown>>, callerTenant: string): string =>
  asPlainId(fields.tenantId) ?? callerTenant;

/**
 * A mutation with ids instead of the names that exactly one loaded record has, so that what depends on
 * these records is known before the mutation is planned. Undefined when it has no such name.
 */
export function withResolvedNames(
  { resource, operation, record }: Mutation,
  snapshot: PlanSnapshot,
  callerTenant: string,
): Mutation | undefined {
  if (!isResourceName(resource) || typeof record !== 'object' || record === null) return undefined;
  const tenantId = tenantFor(record as Record<string, unknown>, callerTenant);
  const resolved = Object.entries(RESOURCES[resource].fields).flatMap(
    ([name, { reference, derived }]): [string, string][] => {
      const value = (record as Record<string, unknown>)[name];
      if (reference === undefined || derived || typeof value !== 'object') return [];
      const lookup = lookupByName(reference, value, tenantId);
      if (!lookup || !snapshot.isLoaded({ kind: 'named', ...lookup })) return [];
      const [found, ...others] = snapshot.named(lookup).rows;
      return found && others.length === 0 ? [[name, found.id]] : [];
    },
  );
  if (resolved.length === 0) return undefined;
  return { resource, operation, record: { ...record, ...Object.fromEntries(resolved) } };
}

function duplicateLookups(
  { name, uniqueKeys, fields: declared }: Resource,
  fields: Readonly<Record<string, unknown>>,
  callerTenant: string,
): DataNeed[] {
  const known: Readonly<Record<string, unknown>> = {
    ...fields,
    tenantId: fields.tenantId ?? callerTenant,
  };
  return uniqueKeys.flatMap((of): DataNeed[] => {
    const values = of.map((field) => known[field]);
    const fits = values.every(
      (value, i) =>
        isLookupValue(value) &&
        (typeof value === 'number') === (declared[of[i] ?? '']?.type === 'integer'),
    );
    return fits ? [{ kind: 'rows', resource: name, fields: of, values }] : [];
  });
}

function neighbours(
  { name }: Resource,
  fields: Readonly<Record<string, unknown>>,
  callerTenant: string,
): DataNeed[] {
  const vrf = requestedVrf(fields);
  if (vrf === undefined) return [];
  const tenantId = asPlainId(fields.tenantId) ?? callerTenant;
  if (name === 'prefixes') {
    const block = parseBlock(stringOrEmpty(fields.cidr));
    return isBlock(block) ? [{ kind: 'neighbours', vrf, tenantId, cidr: formatBlock(block) }] : [];
  }
  const host = parseHost(
    stringOrEmpty(name === 'ip-ranges' ? fields.startAddress : fields.address).split('/')[0] ?? '',
  );
  if (!host || (name !== 'ip-ranges' && name !== 'ip-addresses')) return [];
  const text = formatHost(host.family, host.value);
  const containing: DataNeed = {
    kind: 'neighbours',
    vrf,
    tenantId,
    cidr: `${text}/${addressBits(host.family)}`,
  };
  return name === 'ip-ranges'
    ? [containing]
    : [containing, { kind: 'addresses', vrf, tenantId, host: text }];
}
