import { randomBytes } from 'node:crypto';
import { TypeID, typeidUnboxed } from 'typeid-js';

/** Kinds of records, used as prefixes of their ids. */
export type IdKind =
  | 'job'
  | 'evt'
  | 'aud'
  | 'out'
  | 'req'
  | 'whk'
  | 'dlv'
  | 'sch'
  | 'run'
  | 'apr'
  | 'dec'
  | 'bkp'
  | 'wrk'
  | 'imp'
  | 'reg'
  | 'sit'
  | 'loc'
  | 'rck'
  | 'mfr'
  | 'dty'
  | 'drl'
  | 'plt'
  | 'dev'
  | 'int'
  | 'cab'
  | 'vrf'
  | 'vlg'
  | 'vln'
  | 'pfx'
  | 'rng'
  | 'ipa'
  | 'cfd'
  | 'usr'
  | 'ses'
  | 'tok'
  | 'lgn'
  | 'idp'
  | 'rol'
  | 'asg'
  | 'map'
  | 'hld'
  | 'aar'
  | 'sec'
  | 'rnr'
  | 'viw';

/** Creates ids: a prefix and a UUIDv7 in base 32, which sort by time of creation. */
export type Ids = {
  next(kind: IdKind): string;
  /** Creates an id that sorts as if it had been created at `time`. */
  at(kind: IdKind, time: Date): string;
};

/** UUIDv7 (RFC 9562, 5.7): 48 bits of milliseconds, then `suffix`, 20 hexadecimal digits. */
function idAt(kind: IdKind, time: Date, suffix: string): string {
  const ms = Math.min(Math.max(time.getTime(), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  const digits = ms + suffix;
  const uuid = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20),
  ].join('-');
  return TypeID.fromUUID(kind, uuid).toString();
}

/** Returns the smallest id of `time`, to filter ids by time of creation. */
export const minIdAt = (kind: IdKind, time: Date): string => idAt(kind, time, '0'.repeat(20));

/** When an id was created, by the clock of the process that did. */
export const timeOfId = (id: string): Date =>
  new Date(Number.parseInt(TypeID.fromString(id).toUUID().replace('-', '').slice(0, 12), 16));

/** Version and variant of a UUIDv7, and 74 random bits. */
const randomSuffix = (): string =>
  `7${randomBytes(2).toString('hex').slice(1)}8${randomBytes(8).toString('hex').slice(1)}`;

export const createIds = (): Ids => ({
  next: (kind) => typeidUnboxed(kind),
  at: (kind, time) => idAt(kind, time, randomSuffix()),
});
