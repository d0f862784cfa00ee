import { randomBytes } from 'node:crypto';
import { TypeID, typeidUnboxed } from 'typeid-js';

/** The prefixes in use. */
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
  | 'bkp'
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
  | 'lgn'
  | 'idp'
  | 'rol'
  | 'asg'
  | 'map';

/** Makes ids: a prefix and a UUIDv7 in base 32, so that they sort by the time they were made. */
export type Ids = {
  next(kind: IdKind): string;
  /** An id that sorts by another time than now: when something is due. */
  at(kind: IdKind, time: Date): string;
};

/** UUIDv7 (RFC 9562, 5.7): 48 bits of milliseconds first. `rest` is 20 hexadecimal digits. */
function idAt(kind: IdKind, time: Date, rest: string): string {
  const ms = Math.min(Math.max(time.getTime(), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  const digits = ms + rest;
  const uuid = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
    digits.slice(20),
  ].join('-');
  return TypeID.fromUUID(kind, uuid).toString();
}

/** The first id that could be made at `time`: a bound for ids as `createdAfter` is one for times. */
export const firstIdAt = (kind: IdKind, time: Date): string => idAt(kind, time, '0'.repeat(20));

/** Version 7 and its variant, and 74 bits of chance. */
const chance = (): string =>
  `7${randomBytes(2).toString('hex').slice(1)}8${randomBytes(8).toString('hex').slice(1)}`;

export const createIds = (): Ids => ({
  next: (kind) => typeidUnboxed(kind),
  at: (kind, time) => idAt(kind, time, chance()),
});
