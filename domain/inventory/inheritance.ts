import { blockAt, contains, addressBits, type Block, type Span } from './cidr.ts';
import type { OpenDraft } from './draft.ts';
import { PLATFORM } from '../access/scope.ts';
import type { ResourceName } from './names.ts';
import type { Draft } from './planning.ts';
import { vrfKeyOf } from './planSnapshot.ts';
import { blockOf, spanOf, type PrefixNode } from './prefixTree.ts';
import { spaceOf } from './spaces.ts';
import { INHERITED, type InheritedScope, type Row } from './resource.ts';

/**
 * How a record belongs to sites and devices through other records: the fields that decide it, and
 * the scopes. Triggers of the database compute the same for lists; a test compares both
 * (test/integration/inventory/scopes.test.ts). Only records of the same tenant count.
 */
type Inheritance = { fields: readonly string[]; scopes(draft: Draft): InheritedScope[] };

const NOTHING: InheritedScope = { siteId: null, deviceId: null };

const atSite = (siteId: unknown): InheritedScope => ({
  siteId: typeof siteId === 'string' ? siteId : null,
  deviceId: null,
});

const hasSameTenant = ({ after }: Draft, other: Row | undefined): other is Row =>
  other !== undefined && (other.tenantId ?? PLATFORM) === after.tenantId;

/** The network of a prefix, or the first address of a range or an address. */
function startOf(row: Row): Block {
  if (typeof row.cidr === 'string') return blockOf(row);
  const { family, first } = spanOf(row);
  return blockAt(family, first, addressBits(family));
}

/** Those of the prefixes around a record that contain it as a whole. */
const containing = (
  { after }: Draft,
  around: readonly PrefixNode[],
  span: Span = spanOf(after),
): PrefixNode[] => around.filter((node) => node.row.id !== after.id && contains(node.block, span));

/** The prefixes that contain a record, or a part of it, as its tenant sees them, the smallest first. */
export const containersOf = (draft: Draft, span?: Span): PrefixNode[] =>
  containing(
    draft,
    draft.prefixTree.containing(spaceOf(draft.snapshot, draft.after), startOf(draft.after)),
    span,
  );

/** The prefixes of all tenants that contain a record, the smallest first. */
export const allContainersOf = (draft: Draft): PrefixNode[] =>
  containing(draft, draft.prefixTree.allContaining(vrfKeyOf(draft.after), startOf(draft.after)));

/** The site of the smallest prefix of the same tenant that contains a record and has a site. */
export const siteOfSpace = (draft: Draft): string | null =>
  (containersOf(draft).find(
    ({ row }) => hasSameTenant(draft, row) && typeof row.siteId === 'string',
  )?.row.siteId as string | undefined) ?? null;

/** The site and the device of an interface. */
function scopeOfInterface(draft: Draft, id: unknown): InheritedScope {
  const row = typeof id === 'string' ? draft.snapshot.get('interfaces', id) : undefined;
  return hasSameTenant(draft, row)
    ? { ...atSite(row.siteId), deviceId: String(row.deviceId) }
    : NOTHING;
}

const INHERITANCE: Readonly<Partial<Record<ResourceName, Inheritance>>> = {
  prefixes: {
    fields: ['tenantId', 'cidr', 'vrfId', 'siteId'],
    scopes: (draft) => [atSite(draft.after.siteId ?? siteOfSpace(draft))],
  },
  'ip-ranges': {
    fields: ['tenantId', 'startAddress', 'endAddress', 'vrfId'],
    scopes: (draft) => [atSite(siteOfSpace(draft))],
  },
  'ip-addresses': {
    fields: ['tenantId', 'address', 'vrfId', 'interfaceId'],
    scopes: (draft) => [
      scopeOfInterface(draft, draft.after.interfaceId),
      atSite(siteOfSpace(draft)),
    ],
  },
  vlans: {
    fields: ['tenantId', 'groupId', 'siteId'],
    scopes(draft) {
      const { after, snapshot } = draft;
      const group =
        typeof after.groupId === 'string' ? snapshot.get('vlan-groups', after.groupId) : undefined;
      return [atSite(after.siteId ?? (hasSameTenant(draft, group) ? group.siteId : null))];
    },
  },
  cables: {
    fields: ['tenantId', 'aInterfaceId', 'bInterfaceId'],
    scopes: (draft) => [
      scopeOfInterface(draft, draft.after.aInterfaceId),
      scopeOfInterface(draft, draft.after.bInterfaceId),
    ],
  },
};

/** Sets what a valid new or changed record belongs to through others. */
export function inheritScopes(draft: OpenDraft): void {
  const inheritance = INHERITANCE[draft.resource.name];
  if (!inheritance || draft.planned.errors.length > 0 || !draft.hasChanged(...inheritance.fields))
    return;
  draft.after[INHERITED] = inheritance.scopes(draft);
}
