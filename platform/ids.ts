import { typeidUnboxed } from 'typeid-js';

/** The prefixes in use. */
export type IdKind = 'job' | 'evt' | 'aud' | 'out' | 'req';

/** Makes ids: a prefix and a UUIDv7 in base 32, so that they sort by the time they were made. */
export type Ids = { next(kind: IdKind): string };

export const createIds = (): Ids => ({ next: (kind) => typeidUnboxed(kind) });
