import {
  contains,
  formatBlock,
  formatHost,
  isReserved,
  overlaps,
  parseInterfaceAddress,
  sameSpan,
  blockAt,
  type Span,
} from '../cidr.ts';
import type { Draft, Rules } from '../planning.ts';
import { SHARED_ROLES } from '../resources/networks.ts';
import type { Row } from '../resource.ts';
import { spanOf, type Placed } from '../prefixTree.ts';
import { vrfKeyOf } from '../planSnapshot.ts';
import { isUniqueIn, warnWhenFull } from './prefixes.ts';

const isShared = ({ role }: Row): boolean =>
  typeof role === 'string' && SHARED_ROLES.includes(role);

function writeAddress(draft: Draft): void {
  const { after, world } = draft;
  after.deviceId =
    draft.sound('interfaceId') && typeof after.interfaceId === 'string'
      ? (world.get('interfaces', after.interfaceId)?.deviceId ?? null)
      : null;
  if (!draft.sound('address', 'vrfId')) return;
  const host = spanOf(after);
  if (draft.sound('role')) checkTaken(draft, host);
  if (draft.changes('address', 'vrfId')) checkPlace(draft, host);
  checkPrimary(draft, host);
}

function checkTaken(draft: Draft, host: Span): void {
  const { after, world } = draft;
  if (!draft.changes('address', 'vrfId', 'role') || !isUniqueIn(draft, after)) return;
  const text = formatHost(host.family, host.first);
  const same = world
    .where('ip-addresses', ['vrfKey', 'host'], [vrfKeyOf(after), text])
    .filter(({ id }) => id !== after.id);
  const other = same.find((row) => !isShared(row) || !isShared(after));
  if (other)
    draft.conflict(
      'duplicate',
      `${text} is there already, and not both have a shared role`,
      { resource: 'ip-addresses', row: other },
      'address',
    );
}

/** Where it lies: the prefix around it decides. */
function checkPlace(draft: Draft, host: Span): void {
  const { after, space } = draft;
  const text = formatHost(host.family, host.first);
  const own = parseInterfaceAddress(String(after.address));
  if (own && isReserved(blockAt(own.family, own.value, own.length), host.first)) {
    draft.error(
      'address',
      'reserved_address',
      `is the network or broadcast address of its /${own.length}`,
    );
  }
  const around = space.around(vrfKeyOf(after), host);
  if (!around) {
    draft.warn('no_prefix', `no prefix contains ${text}`, 'address');
    return;
  }
  const name = formatBlock(around.block);
  if (isReserved(around.block, host.first) && draft.sound('address'))
    draft.error(
      'address',
      'reserved_address',
      'is the network or broadcast address of the prefix that it is in',
    );
  if (around.row.allocationMode === 'dynamic') {
    draft.conflict(
      'dynamic_prefix',
      `${name} is owned by DHCP: addresses are not given by hand`,
      { resource: 'prefixes', row: around.row },
      'address',
    );
  }
  if (around.row.status === 'container')
    draft.warn('container_with_addresses', `${name} is a container`, 'address', {
      resource: 'prefixes',
      row: around.row,
    });
  warnOfGateway(draft, around, host);
  const isFirst =
    draft.world
      .where('ip-addresses', ['vrfKey', 'host'], [vrfKeyOf(after), text])
      .filter(({ id }) => id !== after.id).length === 0;
  if (isFirst) {
    warnWhenFull(draft, around, 1n);
    draft.accepted(() => space.take(around.row.id, 1n));
  }
}

/** The first address of a network is by custom its gateway's (in IPv6 by RFC 4291, 2.6.1, the routers'). */
function warnOfGateway(draft: Draft, { block, row }: Placed, host: Span): void {
  const gateway = block.family === 4 ? block.first + 1n : block.first;
  if (host.first !== gateway || block.length >= (block.family === 4 ? 31 : 127)) return;
  draft.warn(
    'gateway_address',
    `the first address of ${formatBlock(block)} is by custom the gateway's`,
    'address',
    { resource: 'prefixes', row },
  );
}

/** The primary address of a device stays on it, and in its family. */
function checkPrimary(draft: Draft, host: Span): void {
  const { before, after, world } = draft;
  if (!before || typeof before.deviceId !== 'string') return;
  if (before.deviceId === after.deviceId && spanOf(before).family === host.family) return;
  const device = world.get('devices', before.deviceId);
  if (device?.primaryIp4Id !== after.id && device?.primaryIp6Id !== after.id) return;
  draft.conflict(
    'primary_address',
    `is the primary address of device ${String(device.name)}`,
    { resource: 'devices', row: device },
    'interfaceId',
  );
}

/** The same address may be there twice only for those who share it. */
export const addressRules: Rules = { write: writeAddress };

function writeRange(draft: Draft): void {
  const { after, world, space } = draft;
  if (
    !draft.sound('startAddress', 'endAddress', 'vrfId') ||
    !draft.changes('startAddress', 'endAddress', 'vrfId')
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
  world.require({
    kind: 'ranges',
    vrf,
    first: String(after.startAddress),
    last: String(after.endAddress),
  });
  for (const other of world.all('ip-ranges')) {
    if (other.id === after.id || vrfKeyOf(other) !== vrf) continue;
    const theirs = spanOf(other);
    if (!overlaps(span, theirs)) continue;
    const name = `${String(other.startAddress)}–${String(other.endAddress)}`;
    if (sameSpan(span, theirs))
      draft.conflict(
        'duplicate',
        `${name} is there already`,
        { resource: 'ip-ranges', row: other },
        'startAddress',
      );
    else if (!contains(span, theirs) && !contains(theirs, span))
      draft.conflict(
        'range_overlap',
        `partly overlaps ${name}`,
        { resource: 'ip-ranges', row: other },
        'startAddress',
      );
  }
  const around = space.around(vrf, { ...span, last: span.first });
  if (!around)
    draft.warn('no_prefix', `no prefix contains ${String(after.startAddress)}`, 'startAddress');
  else if (!contains(around.block, span))
    draft.warn('crosses_prefix', `goes beyond ${formatBlock(around.block)}`, 'endAddress', {
      resource: 'prefixes',
      row: around.row,
    });
}

/** Ranges lie apart or one in another. */
export const rangeRules: Rules = { write: writeRange };
