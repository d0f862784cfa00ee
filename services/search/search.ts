import type { ApprovalReader } from '../../db/approvals/approvals.ts';
import type { Knex } from '../../db/core/knex.ts';
import { branchesOf, similarBranchesOf, type SearchReader } from '../../db/search/branches.ts';
import { runBranches, type MatchRow } from '../../db/search/search.ts';
import { isMacAddress } from '../../domain/inventory/fields.ts';
import { RESOURCE_NAMES } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import {
  MATCHES,
  parseSearch,
  SEARCH_KINDS,
  type Match,
  type SearchKind,
  type SearchQuery,
} from '../../domain/search/query.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
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

/** What a search shows of a record that it finds by its id. */
type Shown = Pick<SearchItem, 'label' | 'description' | 'tenantId'> &
  Partial<Pick<SearchItem, 'vrfId'>>;

/** Reads a record of a kind for a caller. Error: `not_found`, also for one outside their scope. */
export type Readers = Readonly<
  Partial<Record<SearchKind, (caller: Caller, id: string) => Promise<Shown>>>
>;

type Deps = {
  db: Knex;
  access: Access;
  approvals: { readerFor(caller: Caller): Promise<ApprovalReader> };
  readers: Readers;
  /** The kinds of records outside the inventory, by the prefix of their ids. */
  prefixes: Readonly<Record<string, SearchKind>>;
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
export function createSearch({ db, access, approvals, readers, prefixes, config }: Deps) {
  const kindOf = (id: string): SearchKind | undefined => {
    const prefix = id.slice(0, 3);
    return prefixes[prefix] ?? RESOURCE_NAMES.find((name) => RESOURCES[name].idPrefix === prefix);
  };

  async function byId(caller: Caller, id: string, kinds: ReadonlySet<SearchKind>) {
    const kind = kindOf(id);
    const read = kind && kinds.has(kind) ? readers[kind] : undefined;
    if (!kind || !read) return [];
    try {
      const shown = await read(caller, id);
      return [{ kind, id, vrfId: null, ...shown, match: 'exact' as const }];
    } catch (error) {
      if (error instanceof AppError && error.code === 'not_found') return [];
      throw error;
    }
  }

  const readerFor = async (caller: Caller): Promise<SearchReader> => ({
    inventory: access.scope(caller, 'inventory:read'),
    schedules: access.scope(caller, 'schedule:read'),
    users: access.scope(caller, 'user:read'),
    approvals: await approvals.readerFor(caller),
  });

  async function byText(
    caller: Caller,
    query: SearchQuery,
    kinds: ReadonlySet<SearchKind>,
    limit: number,
    signal: AbortSignal,
  ): Promise<SearchAnswer> {
    const reader = await readerFor(caller);
    const limits = { signal, timeoutMs: config.searchTimeoutMs };
    const parts = { kinds, limit: limit + 1, aroundLimit: MAX_AROUND + 1 };
    const found = await runBranches(db, branchesOf(query, reader, parts), limits);
    if (found.rows.length > 0 || !isMisspellable(query))
      return answerFrom(found.rows, found.unanswered, limit);
    const similar = await runBranches(db, similarBranchesOf(query, reader, parts), limits);
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
      const wanted = new Set(kinds);
      if (query.id === undefined) return byText(caller, query, wanted, limit, signal);
      const items = await byId(caller, query.id, wanted);
      return { items, around: [], more: [], incomplete: [] };
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
      .map(({ kind, rank, ...row }) => ({
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
