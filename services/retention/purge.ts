import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Commit } from '../../db/core/commit.ts';
import { isBusy, isRefused } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { lockIfCurrentAttempt } from '../../db/jobs/jobs.ts';
import { shareHoldLock } from '../../db/retention/holds.ts';
import {
  endKey,
  examineWindow,
  FIRST_KEY,
  MAX_ROWS,
  readFloors,
  REMOVALS,
  type DueRecord,
} from '../../db/retention/batches.ts';
import { lockOverrides, readOverrides } from '../../db/retention/settings.ts';
import { PURGE_ORDER } from '../../db/retention/sources.ts';
import {
  findTenantsWithRecords,
  lockPurge,
  marksOf,
  raiseMarks,
  readProgress,
  saveProgress,
  saveUnfinished,
  type UnfinishedPurge,
} from '../../db/retention/state.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { JobFailure, type JobTools } from '../../domain/jobs/jobType.ts';
import {
  cutoffsOf,
  KEPT_OF_EACH,
  NO_OVERRIDES,
  startOfDay,
  type Cutoffs,
  type RetentionDays,
  type RetentionKind,
  type RetentionOverrides,
} from '../../domain/retention/retention.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import { counted } from '../../domain/shared/counted.ts';

export type PurgeRun = Pick<JobTools, 'jobId' | 'runId' | 'attempt' | 'signal'>;

type Deps = { db: Knex; commit: Commit; log: Log; config: { retention: RetentionDays } };

/** Tenants whose periods one query reads. */
const TENANT_PAGE = 500;

/** A purge that is killed repeats what it has examined for as long. */
const SAVE_EVERY_MS = 60_000;

/** While records are restored, nothing is purged. */
const RESTORE_WAIT_MS = 2_000;

/** The rest of the purge of one tenant: the kinds that are not done, and where the first one is. */
type Turn = {
  tenantId: string;
  doneFor: string;
  overrides: RetentionOverrides;
  kinds: RetentionKind[];
  /** The key up to which the first kind is purged; null at its beginning. */
  after: string | null;
  /** The ids from which on the last records are kept, by kind and type or schedule. */
  floors: Map<string, string | null>;
};

/** The outcome of a batch: where the kind continues; null when it is done. */
type BatchResult = { rows: number; next: string | null };

/** Nothing of the examined records is due. Rolls the transaction back. */
class NothingDue extends Error {
  readonly next: string | null;
  constructor(next: string | null) {
    super('Nothing is due');
    this.next = next;
  }
}
class RestoreRunning extends Error {}
/** The periods of the tenant have changed since its turn began. Rolls the transaction back. */
class PeriodsChanged extends Error {}

/** The periods in what a purge is done for: a day, and a hash of the periods. */
const periodsOf = (doneFor: string): string | undefined => doneFor.split(' ')[1];

const unfinishedOf = ({ doneFor, kinds, after }: Turn): UnfinishedPurge => ({
  doneFor,
  kinds,
  after,
});

/** Deletes records whose retention has ended, in batches of at most 5,000 rows. */
export function createPurge({ db, commit, log, config: { retention: defaults } }: Deps) {
  const doneForOf = (overrides: RetentionOverrides, now: Date): string => {
    const periods = JSON.stringify([defaults, overrides]);
    const digest = hash('sha256', periods, 'base64url').slice(0, 16);
    return `${startOfDay(now).toISOString().slice(0, 10)} ${digest}`;
  };

  const turnOf = (tenantId: string, overrides: RetentionOverrides, now: Date): Turn => ({
    tenantId,
    doneFor: doneForOf(overrides, now),
    overrides,
    kinds: [...PURGE_ORDER],
    after: null,
    floors: new Map(),
  });

  /** The turn that an earlier run has left, if it was for the same periods; otherwise the turn as it is. */
  function resumed(turn: Turn, unfinished: UnfinishedPurge | null | undefined): Turn {
    if (!unfinished || periodsOf(unfinished.doneFor) !== periodsOf(turn.doneFor)) return turn;
    const left = new Set(unfinished.kinds);
    const kinds = turn.kinds.filter((kind) => left.has(kind));
    // The order may be that of another version.
    const after = kinds[0] === unfinished.kinds[0] ? unfinished.after : null;
    return { ...turn, doneFor: unfinished.doneFor, kinds, after };
  }

  /** The tenants whose purge is not complete for this day and their periods. */
  async function findTurns(now: Date): Promise<Turn[]> {
    const tenants = await findTenantsWithRecords(db);
    const turns: Turn[] = [];
    for (let at = 0; at < tenants.length; at += TENANT_PAGE) {
      const ids = tenants.slice(at, at + TENANT_PAGE);
      const [overrides, progress] = [await readOverrides(db, ids), await readProgress(db, ids)];
      for (const tenantId of ids) {
        const turn = turnOf(tenantId, overrides.get(tenantId) ?? NO_OVERRIDES, now);
        const known = progress.get(tenantId);
        if (known?.doneFor !== turn.doneFor) turns.push(resumed(turn, known?.unfinished));
      }
    }
    return turns;
  }

  /** Leaves out the last records of each type or schedule. */
  async function withoutKept(
    trx: Knex,
    kind: RetentionKind,
    { tenantId, floors }: Turn,
    due: readonly DueRecord[],
  ): Promise<DueRecord[]> {
    if (kind !== 'jobs' && kind !== 'scheduleRuns') return [...due];
    const keyOf = (value: string | null) => `${kind}/${value ?? ''}`;
    const unknown = new Set(
      due.flatMap(({ keptBy }) => (keptBy === null || floors.has(keyOf(keptBy)) ? [] : keptBy)),
    );
    if (unknown.size > 0) {
      const values = [...unknown];
      const found = await readFloors(trx, kind, { tenantId, values, kept: KEPT_OF_EACH });
      for (const value of values) floors.set(keyOf(value), found.get(value) ?? null);
    }
    return due.filter(({ id, keptBy }) => id < (floors.get(keyOf(keptBy)) ?? ''));
  }

  async function purgeWindow(
    trx: Knex,
    turn: Turn,
    kind: RetentionKind,
    { cutoffs, before }: { cutoffs: Cutoffs; before: string },
  ): Promise<BatchResult & { picked: DueRecord[] }> {
    const after = turn.after ?? FIRST_KEY[kind === 'events' ? 'events' : 'other'];
    const query = { tenantId: turn.tenantId, cutoffs, after, before };
    const { due, last, isLastWindow } = await examineWindow(trx, kind, query);
    const removable = await withoutKept(trx, kind, turn, due);
    const { picked, isCut } = pick(removable);
    const end = isLastWindow ? null : last;
    if (picked.length === 0) throw new NothingDue(end);
    const rows = await REMOVALS[kind](trx, picked);
    // What was left out of this batch is examined again.
    return { rows, picked, next: isCut ? after : end };
  }

  /** Purges the next records of the first kind of a turn, in one commit. */
  async function purgeBatch(turn: Turn, now: Date, run: PurgeRun): Promise<BatchResult> {
    const [kind] = turn.kinds;
    if (!kind) return { rows: 0, next: null };
    const { tenantId } = turn;
    const cutoffs = cutoffsOf(defaults, turn.overrides, kind, now);
    const before = await endKey(db, kind, cutoffs);
    if (before === null) return { rows: 0, next: null };
    return commit(systemCaller(tenantId, jobWorkflowId(run.jobId)), async (work) => {
      const trx = await work.trx();
      if (!(await lockPurge(trx, tenantId))) throw new RestoreRunning();
      await shareHoldLock(trx, [tenantId]);
      const { picked, ...result } = await purgeWindow(trx, turn, kind, { cutoffs, before });
      const marks = marksOf(tenantId, picked);
      await raiseMarks(trx, kind, marks);
      work.audit(
        'retention.purge',
        { type: 'retention', id: tenantId },
        {
          after: {
            jobId: run.jobId,
            kind,
            records: picked.length,
            rows: result.rows,
            until: marks.map(({ jobType, untilId }) => ({ jobType, untilId })),
          },
        },
      );
      // Late, so that other writers of the tenant and of the job wait only briefly.
      const doneFor = doneForOf(await lockOverrides(trx, tenantId), now);
      if (periodsOf(doneFor) !== periodsOf(turn.doneFor)) throw new PeriodsChanged();
      if (!(await lockIfCurrentAttempt(trx, run)))
        throw new JobFailure('attempt_superseded', 'Another attempt purges', { retryable: false });
      return result;
    }).catch((error: unknown) => {
      if (error instanceof NothingDue) return { rows: 0, next: error.next };
      throw error;
    });
  }

  /** One batch of a turn. Returns the turn that is left; undefined when the purge of the tenant is complete. */
  async function takeTurn(
    turn: Turn,
    now: Date,
    run: PurgeRun,
    count: (kind: RetentionKind, rows: number) => void,
  ): Promise<Turn | undefined> {
    const [kind] = turn.kinds;
    if (kind) {
      const { rows, next } = await purgeBatch(turn, now, run);
      count(kind, rows);
      turn.after = next;
      if (next === null) turn.kinds.shift();
    }
    if (turn.kinds.length > 0) return turn;
    await saveProgress(db, turn.tenantId, turn.doneFor);
    // After a turn that began on an earlier day, what has become due since is left.
    const next = turnOf(turn.tenantId, turn.overrides, now);
    return next.doneFor === turn.doneFor ? undefined : next;
  }

  async function saveTurns(turns: readonly Turn[]): Promise<void> {
    for (let at = 0; at < turns.length; at += TENANT_PAGE)
      await saveUnfinished(
        db,
        turns
          .slice(at, at + TENANT_PAGE)
          .map((turn) => ({ tenantId: turn.tenantId, unfinished: unfinishedOf(turn) })),
      );
  }

  /**
   * The turn to take after an error; undefined when the records of the tenant cannot be purged: that
   * must not keep the purge from those of others. Other errors, such as a lost connection, are thrown.
   */
  async function turnAfter(
    error: unknown,
    turn: Turn,
    now: Date,
    signal: AbortSignal,
  ): Promise<Turn | undefined> {
    const { tenantId } = turn;
    if (error instanceof PeriodsChanged) {
      const overrides = (await readOverrides(db, [tenantId])).get(tenantId) ?? NO_OVERRIDES;
      return turnOf(tenantId, overrides, now);
    }
    if (error instanceof RestoreRunning) {
      await sleep(RESTORE_WAIT_MS, undefined, { signal });
      return turn;
    }
    if (!isRefused(error) && !isBusy(error)) throw error;
    log.error({ err: error, tenantId }, 'cannot purge the records of a tenant');
    return undefined;
  }

  return {
    /**
     * Purges what is due at `now`, one batch of each tenant in turn, until `untilMs` (as
     * `performance.now()`). Returns true when nothing due is left. Error: `purge_incomplete` when all others
     * are purged, but some tenants cannot be.
     */
    async run(
      run: PurgeRun,
      now: Date,
      untilMs: number,
      count: (kind: RetentionKind, rows: number) => void,
    ): Promise<boolean> {
      let failures = 0;
      let turns = await findTurns(now);
      let savedAt = performance.now();
      while (turns.length > 0) {
        const left: Turn[] = [];
        for (const [i, turn] of turns.entries()) {
          run.signal.throwIfAborted();
          const isOver = performance.now() >= untilMs;
          if (isOver || performance.now() - savedAt > SAVE_EVERY_MS) {
            await saveTurns([...left, ...turns.slice(i)]);
            savedAt = performance.now();
          }
          if (isOver) return false;
          try {
            left.push(...[(await takeTurn(turn, now, run, count)) ?? []].flat());
          } catch (error) {
            const again = await turnAfter(error, turn, now, run.signal);
            if (again) left.push(again);
            else failures += 1;
          }
        }
        turns = left;
      }
      if (failures > 0)
        throw new JobFailure(
          'purge_incomplete',
          `The records of ${counted(failures, 'tenant')} cannot be purged; the server log says why`,
          { retryable: false },
        );
      return true;
    },
  };
}

/** The first records whose rows one commit may delete: at least one, whatever it has. */
export function pick(due: readonly DueRecord[]): { picked: DueRecord[]; isCut: boolean } {
  let rows = 0;
  const picked: DueRecord[] = [];
  for (const record of due) {
    rows += record.rows;
    if (picked.length > 0 && rows > MAX_ROWS) return { picked, isCut: true };
    picked.push(record);
  }
  // If a single record has more parts, some are left.
  return { picked, isCut: rows > MAX_ROWS };
}
