/** A part of what is in a prefix: what a cursor leads to, or what starts at a network or ends before one. */
export type Part = { cursor: string | null } | { from: string } | { before: string };

export const FIRST_PART: Part = { cursor: null };
