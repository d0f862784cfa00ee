import {
  contains,
  formatBlock,
  formatHost,
  isReserved,
  parseInterfaceAddress,
  sameSpan,
  blockAt,
  type Span,
} from '../cidr.ts';
import { clearPrimary } from '../detach.ts';
import type { Draft, Rules } from '../planning.ts';
import { SHARED_ROLES } from '../resources/networks.ts';
import type { Row } from '../resource.ts';
import { spanOf, type PrefixNode } from '../prefixTree.ts';
import { PLATFORM } from '../../access/scope.ts';
import { isIn, spaceOf, type Space } from '../spaces.ts';
import { enforcesUniqueness, warnWhenFull } from './prefixes.ts';
import { checkAssignment, hasMoved } from './sharedSpace.ts';

const isShared = ({ role }: Row): boolean =>
  typeof role === 'string' && SHARED_ROLES.includes(role);

function writeAddress(draft: Draft): void {
  const { after, snapshot } = draft;
  after.deviceId =
    draft.isValid('interfaceId') && typeof after.interfaceId === 'string'
      ? (snapshot.get('interfaces', after.interfaceId)?.deviceId ?? null)
      : null;
  if (!draft.isValid('address', 'vrfId', 'tenantId')) return;
  const host = spanOf(after);
  const space = spaceOf(snapshot, after);
  const moved = hasMoved(draft, space, 'address');
  if (moved && !checkAssignment(draft, space, host, 'address')) return;
  if (draft.isValid('role') && (moved || draft.hasChanged('role')))
    checkDuplicate(draft, space, host);
  if (moved) checkContainingPrefix(draft, space, host);
  checkPrimary(draft, host);
}

/** The other records of a space with the address of a record. */
function otherAddresses({ snapshot }: Draft, space: Space, address: Row): Row[] {
  const { vrf, tenantId } = space;
  const { family, first } = spanOf(address);
  const host = formatHost(family, first);
  snapshot.require({ kind: 'addresses', vrf, tenantId, host });
  return snapshot.addressesAt(vrf, host).filter((row) => row.id !== address.id && isIn(space, row));
}

/** Another record of an address in its space, unless both have a shared role. */
export const findDuplicateAddress = (draft: Draft, address: Row): Row | undefined =>
  otherAddresses(draft, spaceOf(draft.snapshot, address), address).find(
    (row) => !isShared(row) || !isShared(address),
  );

/** Another record, of any tenant, of an address that the platform assigns from its prefix. */
function findAssigned(draft: Draft, space: Space, host: Span): Row | undefined {
  const { snapshot, prefixTree, after } = draft;
  const parent = prefixTree.parentOf(space, host);
  if (!space.isShared || after.tenantId === PLATFORM || parent?.row.tenantId !== PLATFORM)
    return undefined;
  const values = [space.vrf, formatHost(host.family, host.first)];
  return snapshot
    .where('ip-addresses', ['vrfKey', 'host'], values)
    .find((row) => row.id !== after.id && (!isShared(row) || !isShared(after)));
}

function checkDuplicate(draft: Draft, space: Space, host: Span): void {
  const { after } = draft;
  if (!enforcesUniqueness(draft, after)) return;
  const text = formatHost(host.family, host.first);
  const other = findDuplicateAddress(draft, after) ?? findAssigned(draft, space, host);
  if (other)
    draft.conflict(
      'duplicate',
      `${text} exists, and not both addresses have a shared role`,
      { resource: 'ip-addresses', row: other },
      'address',
    );
}

/** Checks an address against the smallest prefix that contains it. */
function checkContainingPrefix(draft: Draft, space: Space, host: Span): void {
  const { after, prefixTree } = draft;
  const text = formatHost(host.family, host.first);
  const own = parseInterfaceAddress(String(after.address));
  if (own && isReserved(blockAt(own.family, own.value, own.length), host.first)) {
    draft.error(
      'address',
      'reserved_address',
      `is the network or broadcast address of its /${own.length}`,
    );
  }
  const parent = prefixTree.parentOf(space, host);
  if (!parent) {
    draft.warn('no_prefix', `no prefix contains ${text}`, 'address');
    return;
  }
  const name = formatBlock(parent.block);
  if (isReserved(parent.block, host.first) && draft.isValid('address'))
    draft.error('address', 'reserved_address', 'is the network or broadcast address of its prefix');
  if (parent.row.allocationMode === 'dynamic') {
    draft.conflict(
      'dynamic_prefix',
      `${name} is managed by DHCP: addresses cannot be assigned manually`,
      { resource: 'prefixes', row: parent.row },
      'address',
    );
  }
  if (parent.row.status === 'container')
    draft.warn('container_with_addresses', `${name} is a container`, 'address', {
      resource: 'prefixes',
      row: parent.row,
    });
  warnOfGateway(draft, parent, host);
  if (otherAddresses(draft, space, after).length === 0) {
    warnWhenFull(draft, parent, host, 1n);
    draft.onAccept(() => prefixTree.addUsage(parent.row.id, 1n));
  }
}

/**
 * Warns about the address that is usually the gateway's: the first host of an IPv4 network, and the
 * subnet-router anycast address of an IPv6 network (RFC 4291, section 2.6.1).
 */
function warnOfGateway(draft: Draft, { block, row }: PrefixNode, host: Span): void {
  const gateway = block.family === 4 ? block.first + 1n : block.first;
  if (host.first !== gateway || block.length >= (block.family === 4 ? 31 : 127)) return;
  draft.warn(
    'gateway_address',
    `the first address of ${formatBlock(block)} is usually the gateway's`,
    'address',
    { resource: 'prefixes', row },
  );
}

/** The primary address of a device keeps its device and its family. */
function checkPrimary(draft: Draft, host: Span): void {
  const { before, after, snapshot } = draft;
  if (!before || typeof before.deviceId !== 'string') return;
  if (before.deviceId === after.deviceId && spanOf(before).family === host.family) return;
  const device = snapshot.get('devices', before.deviceId);
  if (device?.primaryIp4Id !== after.id && device?.primaryIp6Id !== after.id) return;
  if (draft.yields('devices', device)) {
    clearPrimary(draft, before);
    return;
  }
  draft.conflict(
    'primary_address',
    `is the primary address of device ${String(device.name)}`,
    { resource: 'devices', row: device },
    'interfaceId',
  );
}

/** An address is unique in its space, unless all its records have a shared role. */
export const addressRules: Rules = { write: writeAddress };

function writeRange(draft: Draft): void {
  const { after, snapshot, prefixTree, spans } = draft;
  if (
    !draft.isValid('startAddress', 'endAddress', 'vrfId', 'tenantId') ||
    !hasMoved(draft, spaceOf(snapshot, after), 'startAddress', 'endAddress')
  )
    return;
  const span = spanOf(after);
  const end = spanOf({ ...after, startAddress: after.endAddress });
  if (end.family !== span.family) {
    draft.error('endAddress', 'range_family', 'is of the other address family');
    return;
  }
  if (span.last < span.first) {
    draft.error('endAddress', 'range_reversed', 'is before the start');
    return;
  }
  const space = spaceOf(snapshot, after);
  if (!checkAssignment(draft, space, span, 'startAddress')) return;
  snapshot.require({
    kind: 'ranges',
    vrf: space.vrf,
    tenantId: space.tenantId,
    first: String(after.startAddress),
    last: String(after.endAddress),
  });
  for (const { row: other, span: otherSpan } of spans.overlappingRanges(space.vrf, span)) {
    if (other.id === after.id || !isIn(space, other)) continue;
    const name = `${String(other.startAddress)}–${String(other.endAddress)}`;
    if (sameSpan(span, otherSpan))
      draft.conflict(
        'duplicate',
        `${name} exists`,
        { resource: 'ip-ranges', row: other },
        'startAddress',
      );
    else if (!contains(span, otherSpan) && !contains(otherSpan, span))
      draft.conflict(
        'range_overlap',
        `partly overlaps ${name}`,
        { resource: 'ip-ranges', row: other },
        'startAddress',
      );
  }
  const parent = prefixTree.parentOf(space, { ...span, last: span.first });
  if (!parent)
    draft.warn('no_prefix', `no prefix contains ${String(after.startAddress)}`, 'startAddress');
  else if (!contains(parent.block, span))
    draft.warn('crosses_prefix', `goes beyond ${formatBlock(parent.block)}`, 'endAddress', {
      resource: 'prefixes',
      row: parent.row,
    });
}

/** Two ranges do not overlap, or one contains the other. */
export const rangeRules: Rules = { write: writeRange };
