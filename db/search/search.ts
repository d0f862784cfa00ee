import { isBusy } from '../core/constraints.ts';
import type { Knex } from '../core/knex.ts';
import { readSnapshot } from '../core/readSnapshot.ts';
import { isResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { SearchKind } from '../../domain/search/query.ts';
import { presentLabel } from '../inventory/labels.ts';
import type { Branch } from './branches.ts';

/**
 * A match. `around` is a prefix around the address that was searched; `rank` is an index of `MATCHES`;
 * `isCut`: better matches of the kind may be missing.
 */
export type MatchRow = {
  kind: SearchKind | 'around';
  id: string;
  label: string;
  description: string | null;
  tenantId: string | null;
  vrfId: string | null;
  rank: number;
  isCut: boolean;
};

/** When a statement is cancelled. */
export type Limits = { signal: AbortSignal; timeoutMs: number };

export type Found = { rows: MatchRow[]; unanswered: Branch['kind'][] };

/** How many times the time of one branch all may take when they are asked one by one. */
const MAX_TURNS = 5;

/**
 * Asks all branches in one statement. If that takes too long, each is asked by itself, with a time
 * limit of its own (`timeoutMs`); `unanswered` names those that did not answer.
 */
export async function runBranches(
  db: Knex,
  branches: readonly Branch[],
  limits: Limits,
): Promise<Found> {
  if (branches.length === 0) return { rows: [], unanswered: [] };
  const together = await answerOf(db, branches, limits);
  if (together) return { rows: together, unanswered: [] };
  const endsAt = performance.now() + MAX_TURNS * limits.timeoutMs;
  const found: Found = { rows: [], unanswered: [] };
  for (const branch of branches) {
    const rows = performance.now() < endsAt ? await answerOf(db, [branch], limits) : undefined;
    if (rows) found.rows.push(...rows);
    else found.unanswered.push(branch.kind);
  }
  return found;
}

/** The label as lists have it. */
function labelOf({ kind, label }: MatchRow): string {
  const name = kind === 'around' ? 'prefixes' : kind;
  const resource = isResourceName(name) ? RESOURCES[name] : undefined;
  return resource ? presentLabel(resource, label) : label;
}

/** Undefined when there is no answer in time. */
async function answerOf(
  db: Knex,
  branches: readonly Branch[],
  limits: Limits,
): Promise<MatchRow[] | undefined> {
  try {
    return await readSnapshot(db, limits, async (trx) => {
      const { rows } = await trx.raw<{ rows: MatchRow[] }>(
        branches.map(({ sql }) => sql).join('\nUNION ALL\n'),
        branches.flatMap(({ bindings }) => bindings),
      );
      return rows.map((row) => ({ ...row, label: labelOf(row) }));
    });
  } catch (error) {
    limits.signal.throwIfAborted();
    if (isBusy(error)) return undefined;
    throw error;
  }
}
