import type { ApprovalReader } from '../../db/approvals/approvals.ts';
import type { Knex } from '../../db/core/knex.ts';
import { branchesOf, byId, isShort, similarBranchesOf } from '../../db/search/branches.ts';
import { runBranches, type Found, type Limits, type MatchRow } from '../../db/search/search.ts';
import { sourcesOf, type SearchReader, type Source } from '../../db/search/sources.ts';
import { isMacAddress } from '../../domain/inventory/fields.ts';
import {
  kindOfId,
  MATCHES,
  parseSearch,
  SEARCH_KINDS,
  type Match,
  type SearchKind,
  type SearchQuery,
} from '../../domain/search/query.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from '../access/access.ts';

export type Search = ReturnType<typeof createSearch>;

/** A record that a search has found. `vrfId` is null for the global table and for other kinds. */
export type SearchItem = {
  kind: SearchKind;
  id: string;
  label: string;
  description: string;
  tenantId: string | null;
  vrfId: string | null;
  match: Match;
};

export type SearchAnswer = {
  items: SearchItem[];
  /** The prefixes around the address or network that was searched, smallest first. */
  around: Omit<SearchItem, 'kind' | 'match'>[];
  /** Kinds with more matches. */
  more: string[];
  /** Kinds that did not answer in time. */
  incomplete: string[];
};

type SearchRequest = { q: string; kinds: readonly SearchKind[] | undefined; limit: number };

type Deps = {
  db: Knex;
  access: Access;
  approvals: { readerFor(caller: Caller): Promise<ApprovalReader> };
  config: { searchTimeoutMs: number };
};

/** Prefixes around an address in all VRFs. */
const MAX_AROUND = 50;

/** Shorter texts are too like each other. */
const SHORTEST_SIMILAR = 4;

/** Whether a text can be a name: another address than the one that was searched is none. */
const isMisspellable = ({ text, network }: SearchQuery): boolean =>
  !network && !isMacAddress(text) && text.length >= SHORTEST_SIMILAR;

/** Finds records of all kinds by id, address, name or a part of a text. */
export function createSearch({ db, access, approvals, config }: Deps) {
  const readerFor = async (caller: Caller): Promise<SearchReader> => ({
    inventory: access.scope(caller, 'inventory:read'),
    jobs: access.scope(caller, 'job:read'),
    schedules: access.scope(caller, 'schedule:read'),
    workflows: await approvals.readerFor(caller),
    users: access.scope(caller, 'user:read'),
    webhooks: access.scope(caller, 'webhook:read'),
    backups: access.scope(caller, 'backup:read'),
  });

  /** The matches by text or address. Kinds of which many records contain the text are asked twice. */
  async function matching(
    query: SearchQuery,
    sources: readonly Source[],
    limit: number,
    limits: Limits,
  ): Promise<Found> {
    const parts = { limit: limit + 1, aroundLimit: MAX_AROUND + 1, isThorough: false };
    const found = await runBranches(db, branchesOf(query, sources, parts), limits);
    const cut = new Set(found.rows.flatMap(({ kind, isCut }) => (isCut ? [kind] : [])));
    if (cut.size === 0 || isShort(query)) return found;
    const again = sources.filter(({ kind }) => cut.has(kind));
    const thorough = branchesOf(query, again, { ...parts, isThorough: true });
    const better = await runBranches(db, thorough, limits);
    const missing = new Set(better.unanswered);
    return {
      rows: [
        ...found.rows.filter(({ kind }) => !cut.has(kind) || missing.has(kind)),
        ...better.rows,
      ],
      unanswered: [...found.unanswered, ...better.unanswered],
    };
  }

  /** Runs the branches, and those of misspelled names if nothing is found. */
  async function byText(
    query: SearchQuery,
    sources: readonly Source[],
    limit: number,
    limits: Limits,
  ): Promise<SearchAnswer> {
    const found = await matching(query, sources, limit, limits);
    if (found.rows.length > 0 || !isMisspellable(query))
      return answerFrom(found.rows, found.unanswered, limit);
    const branches = similarBranchesOf(query, sources, limit + 1);
    const similar = await runBranches(db, branches, limits);
    return answerFrom(similar.rows, [...found.unanswered, ...similar.unanswered], limit);
  }

  return {
    /**
     * Finds up to `limit` records of each kind that the caller may read, best matches first. Error: the
     * reason of `signal`.
     */
    async find(
      caller: Caller,
      { q, kinds = SEARCH_KINDS, limit }: SearchRequest,
      signal: AbortSignal,
    ): Promise<SearchAnswer> {
      const query = parseSearch(q);
      const { id } = query;
      const named = id === undefined ? kinds : kinds.filter((kind) => kind === kindOfId(id));
      const sources = sourcesOf(await readerFor(caller), new Set(named));
      const limits = { signal, timeoutMs: config.searchTimeoutMs };
      if (id === undefined) return byText(query, sources, limit, limits);
      const branches = sources.map((source) => byId(source, id));
      const { rows, unanswered } = await runBranches(db, branches, limits);
      return answerFrom(rows, unanswered, limit);
    },
  };
}

function answerFrom(
  rows: readonly MatchRow[],
  unanswered: readonly string[],
  limit: number,
): SearchAnswer {
  const counts = new Map<string, number>();
  const shown = rows.filter(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= (kind === 'around' ? MAX_AROUND : limit);
  });
  const more = [...counts]
    .filter(([kind, count]) => count > (kind === 'around' ? MAX_AROUND : limit))
    .map(([kind]) => kind);
  return {
    // The sort is stable: within a match, the order of the kinds and of their branches stays.
    items: shown
      .filter((row) => row.kind !== 'around')
      .toSorted((a, b) => a.rank - b.rank)
      .map(({ kind, rank, isCut, ...row }) => ({
        kind: kind as SearchKind,
        ...row,
        description: row.description ?? '',
        match: MATCHES[rank] ?? 'part',
      })),
    around: shown
      .filter(({ kind }) => kind === 'around')
      .map(({ id, label, description, tenantId, vrfId }) => ({
        ...{ id, label, tenantId, vrfId },
        description: description ?? '',
      })),
    more,
    incomplete: [...new Set(unanswered)],
  };
}
