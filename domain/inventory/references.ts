import { PLATFORM } from '../access/scope.ts';
import { isJsonObject } from '../shared/jsonObject.ts';
import type { OpenDraft } from './draft.ts';
import { allContainersOf } from './inheritance.ts';
import { tenantOf } from './ownership.ts';
import { isSharedWith } from './sharing.ts';
import type { ResourceName } from './names.ts';
import type { Viewer } from './planning.ts';
import { lookupFieldFor } from './prefetch.ts';
import {
  NEAR_FIELDS,
  nearValueOf,
  type NamedLookup,
  type Near,
  type NearField,
} from './planSnapshot.ts';
import type { Resource, Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { nounOf, withArticle } from '../shared/nouns.ts';

/**
 * The order in which references are resolved. Site, VRF and device come first, because they decide
 * between records of the same name. The tenant comes last, because it may follow from the site, unless
 * the request names it.
 */
function resolutionOrder(field: string): number {
  if (field === 'siteId' || field === 'vrfId' || field === 'deviceId') return 0;
  return field === 'tenantId' ? 2 : 1;
}

/** The references of each resource in the order in which they are resolved. */
const ordered = new Map<ResourceName, readonly (readonly [field: string, to: ResourceName])[]>();

function referencesOf({ name, fields }: Resource) {
  const known = ordered.get(name);
  if (known) return known;
  const references = Object.entries(fields)
    .flatMap(([field, { reference, derived }]) =>
      reference === undefined || derived ? [] : [[field, reference] as const],
    )
    .sort(([a], [b]) => resolutionOrder(a) - resolutionOrder(b));
  ordered.set(name, references);
  return references;
}

/** Replaces references by name with ids and checks that every referenced record exists. */
export function resolveReferences(draft: OpenDraft, viewer: Viewer): void {
  if (isJsonObject(draft.after.tenantId)) resolveReference(draft, viewer, 'tenantId', 'tenants');
  for (const [name, to] of referencesOf(draft.resource)) resolveReference(draft, viewer, name, to);
}

function resolveReference(draft: OpenDraft, viewer: Viewer, name: string, to: ResourceName): void {
  const value = draft.after[name];
  const isNew = !draft.before || draft.isProvided(name);
  if (!isNew || !draft.isValid(name)) return;
  if (isJsonObject(value)) resolveByField(draft, viewer, name, to, Object.entries(value));
  else if (typeof value === 'string') checkReference(draft, viewer, name, to, value);
}

function checkReference(
  draft: OpenDraft,
  viewer: Viewer,
  name: string,
  to: ResourceName,
  id: string,
): void {
  if (name === 'tenantId') return checkTenant(draft, viewer, id);
  const row = draft.snapshot.get(to, id);
  // An unchanged reference is kept even when the caller may not read its record.
  const isAllowed =
    row &&
    (viewer.canRead(RESOURCES[to], row) ||
      isSharedWith(row, tenantOfDraft(draft, viewer)) ||
      draft.before?.[name] === id ||
      (name === 'vrfId' && isInReadablePrefix(draft, viewer)));
  if (!isAllowed) draft.error(name, 'not_found', `there is no ${nounOf(to)} with id ${id}`);
}

/** The tenant of a record, as far as it is known before its references are resolved. */
const tenantOfDraft = ({ after }: OpenDraft, { tenantId }: Viewer): string =>
  typeof after.tenantId === 'string' ? after.tenantId : tenantId;

/** True when a prefix that the caller may read contains the record: the prefix names its VRF. */
const isInReadablePrefix = (draft: OpenDraft, viewer: Viewer): boolean =>
  prefixesAround(draft).some((row) => viewer.isInside(RESOURCES.prefixes, row));

const SPACE_FIELDS = ['cidr', 'address', 'startAddress', 'endAddress'];

/** The prefixes that contain a prefix, a range or an address, the smallest first. */
export function prefixesAround(draft: OpenDraft): Row[] {
  const { after, resource } = draft;
  const isSpace = SPACE_FIELDS.some((field) => Object.hasOwn(resource.fields, field));
  const hasVrf = after.vrfId === null || typeof after.vrfId === 'string';
  return isSpace && resource.name !== 'sites' && hasVrf && draft.isValid(...SPACE_FIELDS)
    ? allContainersOf(draft).map(({ row }) => row)
    : [];
}

/**
 * Checks the tenant of a record. A tenant exists when it has a record, or when the caller has a
 * grant there: gateways may name tenants that have no record. Callers without permission at a
 * tenant get the same error whether it exists or not.
 */
function checkTenant(draft: OpenDraft, viewer: Viewer, id: string): void {
  if (id === draft.before?.tenantId) return;
  const tenantOfParent = namedParentTenant(draft, viewer);
  if (tenantOfParent !== undefined) {
    draft.after.tenantId = tenantOfParent;
    return;
  }
  const canUse = viewer.canUseTenant(id);
  const isKnown = () =>
    id === PLATFORM ||
    id === viewer.tenantId ||
    viewer.hasGrantAtTenant(id) ||
    draft.snapshot.get('tenants', id) !== undefined;
  if (canUse && isKnown()) return;
  // A caller with access to a site or a device only creates records for the tenant of what they
  // belong to there.
  const tenants = ownersOf(draft, viewer).map(({ tenantId }) => tenantId);
  const isDefault = !draft.isProvided('tenantId');
  if (isDefault ? tenants.length > 0 : tenants.includes(id)) {
    if (isDefault) draft.after.tenantId = tenants[0];
    return;
  }
  if (canUse) draft.error('tenantId', 'not_found', `there is no tenant with id ${id}`);
  else draft.deny('tenantId', { tenantId: id });
}

/**
 * The tenant of a new prefix without one: that of the parent which the request names, where the
 * caller may write there, or may only read at both.
 */
function namedParentTenant({ after, before, snapshot, ...draft }: OpenDraft, viewer: Viewer) {
  const id = after.parentPrefixId;
  if (before || draft.isProvided('tenantId') || typeof id !== 'string') return undefined;
  if (draft.resource.name !== 'prefixes' || !draft.isValid('parentPrefixId')) return undefined;
  const tenantId = snapshot.get('prefixes', id)?.tenantId;
  if (typeof tenantId !== 'string') return undefined;
  const mayWrite = (tenant: string) => viewer.canWrite({ tenantId: tenant });
  return mayWrite(tenantId) || (!mayWrite(viewer.tenantId) && viewer.canUseTenant(tenantId))
    ? tenantId
    : undefined;
}

/** The fields by which a record belongs to another one, besides the prefixes around it. */
const OWNER_FIELDS: readonly string[] = [
  'siteId',
  'interfaceId',
  'groupId',
  'aInterfaceId',
  'bInterfaceId',
];

/** The readable records that a record belongs to. Their tenants are those it may have. */
function ownersOf(draft: OpenDraft, viewer: Viewer): Row[] {
  const { after, resource, snapshot } = draft;
  const referenced = OWNER_FIELDS.flatMap((name) => {
    const reference = resource.fields[name]?.reference;
    const id = after[name];
    const row = reference && typeof id === 'string' ? snapshot.get(reference, id) : undefined;
    return reference && row && viewer.isInside(RESOURCES[reference], row) ? [row] : [];
  });
  const around = prefixesAround(draft).filter((row) => viewer.isInside(RESOURCES.prefixes, row));
  return [...referenced, ...around];
}

/** Resolves a reference such as `{ "name": "ams1" }`, given as the entries of that object. */
function resolveByField(
  draft: OpenDraft,
  viewer: Viewer,
  name: string,
  to: ResourceName,
  entries: readonly [string, unknown][],
): void {
  const target = RESOURCES[to];
  const [field = '', value] = entries[0] ?? [];
  if (!target.lookupFields.includes(field)) {
    const allowed = ['id', ...target.lookupFields].join(', ');
    draft.error(name, 'reference', `${withArticle(nounOf(to))} can be named by ${allowed}`);
    return;
  }
  const text = typeof value === 'string' ? value : '';
  const near = nearOf(draft, target, name);
  const found = findByField(draft, viewer, target, [field, text], near);
  const [row] = found;
  if (!row) {
    draft.error(name, 'not_found', `there is no ${nounOf(to)} with the ${field} ${text}`);
  } else if (found.length > 1) {
    const ids = found.slice(0, 5).map(({ id }) => id);
    const message = `${found.length} ${nounOf(to, 2)} have the ${field} ${text}: ${ids.join(', ')}`;
    draft.error(name, 'ambiguous', message);
  } else {
    // Read by its id, because that locks the row.
    draft.after[name] = draft.snapshot.get(to, row.id)?.id ?? row.id;
  }
}

/**
 * The readable records with this value that best match the record of the draft. Among shared records,
 * others can use only the names of those of the platform: the name of a record that another tenant shares
 * is that tenant's choice, and must not be mistaken for another one.
 */
function findByField(
  draft: OpenDraft,
  viewer: Viewer,
  target: Resource,
  [field, text]: readonly [field: string, text: string],
  near: Near,
): readonly Row[] {
  const canonical = target.fields[field]?.canonical?.(text) ?? text;
  if (typeof canonical !== 'string') return [];
  const lookup = {
    resource: target.name,
    field: lookupFieldFor(field, canonical),
    value: canonical,
    tenantId: tenantOfDraft(draft, viewer),
  };
  const rows = loadNamed(draft, lookup, near).filter(
    (row) =>
      viewer.isInside(target, row) ||
      (tenantOf(target, row) === PLATFORM &&
        (viewer.canRead(target, row) || isSharedWith(row, tenantOfDraft(draft, viewer)))),
  );
  return bestMatches(near, rows);
}

/** The field that a referenced record must have in common with the record: rules refuse any other. */
const IN_COMMON: Readonly<Record<string, NearField>> = {
  locationId: 'siteId',
  rackId: 'siteId',
  parentId: 'siteId',
  parentPrefixId: 'vrfId',
  lagId: 'deviceId',
  primaryIp4Id: 'deviceId',
  primaryIp6Id: 'deviceId',
};

/** What decides between records of one name that `name` can refer to, the most important first. */
function nearOf({ after, resource }: OpenDraft, target: Resource, name: string): Near {
  const valueOf = (field: NearField): unknown => {
    if (field === 'deviceId' && resource.name === 'devices') return after.id;
    return Object.hasOwn(resource.fields, field) ? nearValueOf(after, field) : undefined;
  };
  const first = IN_COMMON[name];
  const fields = [...NEAR_FIELDS].sort((a, b) => Number(b === first) - Number(a === first));
  return Object.fromEntries(
    fields.flatMap((field): [string, string][] => {
      const value = valueOf(field);
      const isKnown = typeof value === 'string' && Object.hasOwn(target.fields, field);
      return isKnown ? [[field, value]] : [];
    }),
  );
}

/**
 * The records of a name that are loaded. If there are more, those that match the draft best are loaded
 * as well: they decide, and need not be among the first.
 */
function loadNamed({ snapshot }: OpenDraft, lookup: NamedLookup, near: Near): Row[] {
  const { rows, isCut } = snapshot.named(lookup);
  if (!isCut || Object.keys(near).length === 0) return rows;
  return snapshot.named({ ...lookup, near }).rows;
}

/**
 * Narrows several records by the values of the draft, one after the other; a value that none of the remaining
 * records has is skipped. `namedParts` in `db/inventory/namedQueries.ts` finds the same in SQL.
 */
const bestMatches = (near: Near, rows: readonly Row[]): readonly Row[] =>
  Object.entries(near).reduce((remaining, [field, value]) => {
    const better = remaining.filter((row) => nearValueOf(row, field as NearField) === value);
    return remaining.length > 1 && better.length > 0 ? better : remaining;
  }, rows);
