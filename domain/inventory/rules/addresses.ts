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
import { vrfKeyOf } from '../planSnapshot.ts';
import { enforcesUniqueness, warnWhenFull } from './prefixes.ts';

const isShared = ({ role }: Row): boolean =>
  typeof role === 'string' && SHARED_ROLES.includes(role);

function writeAddress(draft: Draft): void {
  const { after, snapshot } = draft;
  after.deviceId =
    draft.isValid('interfaceId') && typeof after.interfaceId === 'string'
      ? (snapshot.get('interfaces', after.interfaceId)?.deviceId ?? null)
      : null;
  if (!draft.isValid('address', 'vrfId')) return;
  const host = spanOf(after);
  if (draft.isValid('role')) checkDuplicate(draft, host);
  if (draft.hasChanged('address', 'vrfId')) checkContainingPrefix(draft, host);
  checkPrimary(draft, host);
}

/** Another record of an address in its VRF, unless both have a shared role. */
export function findDuplicateAddress({ snapshot }: Draft, address: Row): Row | undefined {
  const { family, first } = spanOf(address);
  return snapshot
    .where('ip-addresses', ['vrfKey', 'host'], [vrfKeyOf(address), formatHost(family, first)])
    .find((row) => row.id !== address.id && (!isShared(row) || !isShared(address)));
}

function checkDuplicate(draft: Draft, host: Span): void {
  const { after } = draft;
  if (!draft.hasChanged('address', 'vrfId', 'role') || !enforcesUniqueness(draft, after)) return;
  const text = formatHost(host.family, host.first);
  const other = findDuplicateAddress(draft, after);
  if (other)
    draft.conflict(
      'duplicate',
      `${text} exists, and not both addresses have a shared role`,
      { resource: 'ip-addresses', row: other },
      'address',
    );
}

/** Checks an address against the smallest prefix that contains it. */
function checkContainingPrefix(draft: Draft, host: Span): void {
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
  const parent = prefixTree.parentOf(vrfKeyOf(after), host);
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
  const isFirst =
    draft.snapshot
      .where('ip-addresses', ['vrfKey', 'host'], [vrfKeyOf(after), text])
      .filter(({ id }) => id !== after.id).length === 0;
  if (isFirst) {
    warnWhenFull(draft, parent, 1n);
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

/** An address is unique in its VRF, unless all its records have a shared role. */
export const addressRules: Rules = { write: writeAddress };

function writeRange(draft: Draft): void {
  const { after, snapshot, prefixTree, spans } = draft;
  if (
    !draft.isValid('startAddress', 'endAddress', 'vrfId') ||
    !draft.hasChanged('startAddress', 'endAddress', 'vrfId')
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
  const vrf = vrfKeyOf(after);
  snapshot.require({
    kind: 'ranges',
    vrf,
    first: String(after.startAddress),
    last: String(after.endAddress),
  });
  for (const { row: other, span: otherSpan } of spans.overlappingRanges(vrf, span)) {
    if (other.id === after.id) continue;
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
  const parent = prefixTree.parentOf(vrf, { ...span, last: span.first });
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
