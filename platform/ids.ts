import { TypeID, typeidUnboxed } from 'typeid-js';

/** The prefixes in use. */
export type IdKind = 
  | 'job' | 'evt' | 'aud' | 'out' | 'req' | 'whk' | 'dlv'
  | 'usr' | 'ses' | 'lgn' | 'idp' | 'rol' | 'asg' | 'map';

/** Makes ids: a prefix and a UUIDv7 in base 32, so that they sort by the time they were made. */
export type Ids = { next(kind: IdKind): string };

/** The first id that could be made at `time`: a bound for ids as `createdAfter` is one for times. */
export function firstIdAt(kind: IdKind, time: Date): string {
  // UUIDv7 (RFC 9562, 5.7): 48 bits of milliseconds first.
  const ms = Math.min(Math.max(time.getTime(), 0), 2 ** 48 - 1).toString(16).padStart(12, '0');
  return TypeID.fromUUID(kind, `${ms.slice(0, 8)}-${ms.slice(8)}-0000-0000-000000000000`).toString();
}

export const createIds = (): Ids => ({ next: (kind) => typeidUnboxed(kind) });
