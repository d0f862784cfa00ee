import { transaction, type Model, type Transaction } from 'objection';
import type { Knex } from './core/knex.ts';
import type { Caller, IdempotencyClaim } from '../domain/shared/caller.ts';
import { AppError } from '../domain/shared/errors.ts';
import type { EventData, EventType } from '../domain/events/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import { fulfilKey } from './core/idempotency.ts';
import {
  NOTHING_CHANGED,
  OUTBOX_TOPIC,
  emptyTrail,
  writeTrail,
  type AuditOutcome,
  type Change,
  type OutboxRow,
  type OwedTask,
  type Subject,
  type Trail,
} from './core/unitOfWork.ts';

/** `tenantId`: whose trail it is, where that is not the caller's. */
type AuditDetail = { before?: object; after?: object; outcome?: AuditOutcome; tenantId?: string };

/** What a use case can do inside its transaction. */
export type Work<Task extends OwedTask> = {
  now: Date;
  /** The transaction, for use cases that read before they write or write in several steps. */
  trx(): Promise<Transaction>;
  /** Adds a record. It is written at the end, together with everything below. */
  insert<M extends typeof Model>(model: M, row: Partial<InstanceType<M>>): InstanceType<M>;
  /** Changes a record at the end; when that finds it in another state, the commit fails with `NothingChanged`. */
  change(change: Change): void;
  /** Records who did what to which record. */
  audit(action: string, subject: Subject, detail?: AuditDetail): void;
  /** Records an event that consumers are told about; `tenantId` where it is not the caller's. */
  emit<T extends EventType>(type: T, subject: Subject, data: EventData<T>, tenantId?: string): void;
  /** Owes a call to Temporal: tried right after the commit, then by the relay until it succeeds. */
  dispatch(task: Task): void;
};

/** The record was in another state than the change was for; nothing was written. */
export class NothingChanged extends Error {}

/** For `catch`: `none` where a commit found nothing to change. */
export const unlessNothing =
  <T>(none: T) =>
  (error: unknown): T => {
    if (error instanceof NothingChanged) return none;
    throw error;
  };

/** Writes for a caller, at the caller's tenant; leaves an audit entry, or throws. */
export type Commit<Task extends OwedTask> = <T>(
  caller: Caller,
  useCase: (work: Work<Task>) => Promise<T> | T,
) => Promise<T>;

/**
 * Writes what a run notes about itself: that it began, a log line, its progress. One statement, which is its own
 * transaction, without an audit entry; what comes of the run is committed like anything else.
 */
export type Note = <T>(statement: (db: Knex, now: Date) => Promise<T>) => Promise<T>;

export const createNote =
  ({ db, clock }: { db: Knex; clock: Clock }): Note =>
  (statement) =>
    statement(db, clock.now());

type Deps = {
  db: Knex;
  ids: Ids;
  clock: Clock;
  dispatch: {
    /** True when this process itself will try the calls right after the commit. */
    isQuick(): boolean;
    /** Called with the outbox rows of a transaction that has committed. Must not throw. */
    committed(rows: readonly OutboxRow[]): void;
  };
  /** Called when a transaction with events has committed. Must not throw. */
  eventsCommitted(): void;
  /** How long the relay leaves a new outbox row to the process that wrote it. */
  dispatchGraceMs: number;
};

/**
 * The only door to a write: one transaction that holds the records, their audit entries, their events and
 * the calls to Temporal that must follow. A use case that only adds and changes records costs one statement.
 */
export const createCommit =
  <Task extends OwedTask>(deps: Deps): Commit<Task> =>
  async (caller, useCase) => {
    const trail = emptyTrail();
    let begun: Promise<Transaction> | undefined;
    const trx = () => (begun ??= transaction.start(deps.db));
    try {
      const result = await useCase(workOn(deps, caller, trail, trx));
      if (trail.audit.length === 0) throw new Error('A commit must leave an audit entry');
      if (caller.idempotency) await fulfilClaim(await trx(), caller.idempotency, trail);
      const open = await begun;
      await writeTrail((open as Knex.Transaction | undefined) ?? deps.db, trail);
      await open?.commit();
      // Knex's `commit` resolves when COMMIT failed, too (a deferred constraint, a deadlock): this promise tells.
      await open?.executionPromise;
      if (trail.outbox.length > 0) deps.dispatch.committed(trail.outbox);
      if (trail.events.length > 0) deps.eventsCommitted();
      return result;
    } catch (error) {
      // The connection may be what failed: then the server has rolled back already.
      await (await begun?.catch(() => undefined))?.rollback().catch(() => undefined);
      throw (error as { code?: unknown }).code === NOTHING_CHANGED ? new NothingChanged() : error;
    }
  };

function workOn<Task extends OwedTask>(
  { ids, clock, dispatch, dispatchGraceMs }: Deps,
  caller: Caller,
  trail: Trail,
  trx: () => Promise<Transaction>,
): Work<Task> {
  const now = clock.now();
  return {
    now,
    trx,
    insert(model, row) {
      const record = model.fromJson(row, { skipValidation: true });
      trail.inserts.push(record);
      return record as InstanceType<typeof model>;
    },
    change: (change) => void trail.changes.push(change),
    audit(action, subject, { before, after, outcome, tenantId } = {}) {
      trail.audit.push({
        id: ids.next('aud'),
        tenantId: tenantId ?? caller.tenantId,
        actorId: caller.actorId,
        via: caller.kind,
        action,
        outcome: outcome ?? 'done',
        subject,
        before: before ?? null,
        after: after ?? null,
        requestId: caller.requestId,
        address: caller.address,
        at: now,
      });
    },
    emit(type, subject, data, tenantId = caller.tenantId) {
      trail.events.push({
        id: ids.next('evt'),
        type,
        tenantId,
        subject,
        actorId: caller.actorId,
        data,
        at: now,
      });
    },
    dispatch(task) {
      const quick = dispatch.isQuick();
      const availableAt = quick ? new Date(now.getTime() + dispatchGraceMs) : now;
      if (!quick) trail.topics.add(OUTBOX_TOPIC);
      trail.outbox.push({ id: ids.next('out'), task, availableAt, at: now });
    },
  };
}

async function fulfilClaim(trx: Transaction, claim: IdempotencyClaim, trail: Trail) {
  if (await fulfilKey(trx as Knex.Transaction, claim, trail.audit[0]?.subject.id ?? '')) return;
  throw new AppError(
    'idempotency_in_progress',
    'Another request with this Idempotency-Key took over.',
  );
}
