import { pluralOf } from './nouns.ts';

/** A number with its noun, such as `1 record` or `3 records`. */
export const counted = (count: number, noun: string): string =>
  `${count} ${count === 1 ? noun : pluralOf(noun)}`;

/** Consecutive numbers with their noun, such as `unit 3` or `units 3 to 5`. */
export const ranged = (noun: string, first: number, last: number): string =>
  first === last ? `${noun} ${first}` : `${pluralOf(noun)} ${first} to ${last}`;
