import type { Knex } from '../core/knex.ts';
import { inPieces } from '../core/prepared.ts';

/** The hashed content of an entry: every column except the seal; `before` and `after` as the stored text. */
export const CONTENT_SQL = `json_build_array(id, tenant_id, actor_id, via, action, outcome, subject_type,
  subject_id, before::text, after::text, request_id, address, extract(epoch FROM at)::text
)::text AS content`;

/** Entries that are read together. One has its record before and after a change. */
export const ENTRIES_PER_PIECE = 50;
/** The size of the content from which on no further entries are read. */
const MAX_CHARS = 4 * 1_048_576;

/** An entry, as far as a statement selects its columns. */
export type ChainEntry = {
  id: string;
  tenant_id: string;
  content: string;
  position: number;
  hash: Buffer;
};

/** The first entries of a statement, which selects their content: all, unless they are large. */
export async function readContents(
  trx: Knex,
  sql: string,
  bindings: readonly Knex.RawBinding[],
): Promise<{ entries: ChainEntry[]; isCut: boolean }> {
  const entries: ChainEntry[] = [];
  let chars = 0;
  for await (const piece of inPieces<ChainEntry>(trx, sql, bindings, {
    maxRows: ENTRIES_PER_PIECE,
  })) {
    entries.push(...piece);
    chars += piece.reduce((sum, { content }) => sum + content.length, 0);
    if (chars >= MAX_CHARS) return { entries, isCut: true };
  }
  return { entries, isCut: false };
}
