import { transaction, type Model } from 'objection';
import type { Knex } from './knex.ts';
import {
  viaOf,
  type Actor,
  type Caller,
  type IdempotencyClaim,
} from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { OutboxTask } from '../../domain/dispatch/tasks.ts';
import type { EventData, EventType } from '../../domain/events/events.ts';
import type { Ids } from '../../platform/ids.ts';
import { currentTrace, inChildSpan } from '../../platform/tracing.ts';
import { accessTopics } from './accessTopics.ts';
import { asRefusal } from './constraints.ts';
import { completeKey } from './idempotency.ts';
import {
  NO_CHANGE,
  OUTBOX_TOPIC,
  emptyUnitOfWork,
  writeUnitOfWork,
  type AuditOutcome,
  type RecordChange,
  type OutboxRow,
  type Subject,
  type UnitOfWork,
} from './unitOfWork.ts';

/** The tenant and the actor of an audit entry or an event, where they are not the caller's. */
export type Attribution = { tenantId?: string | undefined; actor?: Actor | undefined };

/** `notBefore`: the time of the record, which can be later than the beginning of the commit. */
type AuditDetail = Attribution & {
  before?: object | null | undefined;
  after?: object | null | undefined;
  outcome?: AuditOutcome;
  notBefore?: Date;
};

/** The writes of a use case. They are collected and written together when the use case returns. */
export type Work = {
  now: Date;
  /** Starts the transaction, for use cases that read, lock or write in several statements. */
  trx(): Promise<Knex.Transaction>;
  /** Inserts a record when the use case returns. */
  insert<M extends typeof Model>(model: M, row: Partial<InstanceType<M>>): InstanceType<M>;
  /** Changes a record when the use case returns. Error of the commit: `NoChange`. */
  change(change: RecordChange): void;
  /** Adds an audit entry. `action` is `<record type>.<verb>`. */
  audit(action: string, subject: Subject, detail?: AuditDetail): void;
  /** Adds an event. */
  emit<T extends EventType>(
    type: T,
    subject: Subject,
    data: EventData<T>,
    attribution?: Attribution,
  ): void;
  /**
   * The same work for another caller, whose request it carries out too: audit entries, events and
   * the result are theirs.
   */
  as(caller: Caller): Work;
  /**
   * Names the record that the use case creates. A request that is repeated with the same
   * `Idempotency-Key` is answered from this record. Required for callers with such a key.
   */
  result(recordId: string): void;
  /**
   * Adds a call to Temporal to the outbox. The dispatcher makes it after the commit, at least once.
   */
  dispatch(task: OutboxTask): void;
  /** Says that the use case leaves a job waiting for a slot. The slots are checked after the commit. */
  awaitSlot(): void;
  /** Calls `report` after the commit, and not if it fails. `report` must not throw. */
  onCommitted(report: () => void): void;
};

/** A record was not in the state that a change requires. Nothing was written. */
export class NoChange extends Error {}

/** For `catch`: returns `fallback` when a commit found nothing to change. */
export const ignoreNoChange =
  <T>(fallback: T) =>
  (error: unknown): T => {
    if (error instanceof NoChange) return fallback;
    throw error;
  };

/**
 * Commits the writes of a use case. Audit entries and events name the caller and belong to the
 * caller's tenant. A use case without an audit entry is refused. Error: `quota_exceeded`.
 */
export type Commit = <T>(caller: Caller, useCase: (work: Work) => Promise<T> | T) => Promise<T>;

/**
 * Runs one statement outside of a commit, so without an audit entry; `now` is the clock of this process. For technical
 * state only: the start of an attempt, its log and its progress.
 */
export type WriteUnaudited = <T>(statement: (db: Knex, now: Date) => Promise<T>) => Promise<T>;

export const createWriteUnaudited =
  ({ db }: { db: Knex }): WriteUnaudited =>
  (statement) =>
    statement(db, new Date());

type DispatchDeps = {
  db: Knex;
  ids: Ids;
  dispatcher: {
    /** True when this process makes the calls itself, right after the commit. */
    canDispatchInline(task: OutboxTask): boolean;
    /** Called with the outbox rows of a committed transaction. Must not throw. */
    onCommitted(rows: readonly OutboxRow[]): void;
  };
  /** How long the relay leaves a new outbox row to the process that wrote it, in milliseconds. */
  dispatchGraceMs: number;
};

type Deps = DispatchDeps & {
  /** Called after a commit with events. Must not throw. */
  onEventsCommitted(): void;
  /** Called after a commit that leaves jobs waiting for a slot. Must not throw. */
  onSlotAwaited(): void;
  /** Called after a commit with the topics of its changes. Must not throw. */
  onChanged(topics: readonly string[]): void;
  /** Called with the duration of each commit. Must not throw. */
  onEnded?(outcome: CommitOutcome, seconds: number): void;
};

export type CommitOutcome = 'committed' | 'refused' | 'failed';

/** Adds a task to the outbox of a unit of work. */
function addTask(
  { ids, dispatcher, dispatchGraceMs }: DispatchDeps,
  unitOfWork: UnitOfWork,
  task: OutboxTask,
  now: Date,
): void {
  const trace = task.trace ?? currentTrace();
  const traced = trace === undefined ? task : { ...task, trace };
  const inline = dispatcher.canDispatchInline(task);
  if (!inline) unitOfWork.topics.add(OUTBOX_TOPIC);
  const delayMs = inline ? dispatchGraceMs : 0;
  unitOfWork.outbox.push({ id: ids.next('out'), task: traced, delayMs, at: now });
}

/**
 * Changes technical state and starts what became possible by it, in one transaction and without an
 * audit entry: the commit that created the record has one.
 */
export type DispatchUnaudited = (change: (trx: Knex) => Promise<OutboxTask[]>) => Promise<void>;

export const createDispatchUnaudited =
  (deps: DispatchDeps): DispatchUnaudited =>
  async (change) => {
    const unitOfWork = emptyUnitOfWork();
    await deps.db.transaction(async (trx) => {
      const tasks = await change(trx);
      for (const task of tasks) addTask(deps, unitOfWork, task, new Date());
      if (tasks.length > 0) await writeUnitOfWork(trx, unitOfWork);
    });
    if (unitOfWork.outbox.length > 0) deps.dispatcher.onCommitted(unitOfWork.outbox);
  };

/**
 * Creates the function through which all audited writes go: records, audit entries, events and
 * outbox tasks are committed in one transaction. A use case that does not call `trx` costs one
 * statement.
 */
export const createCommit =
  (deps: Deps): Commit =>
  (caller, useCase) =>
    inChildSpan('commit', {}, () => commitUseCase(deps, caller, useCase));

async function commitUseCase<T>(
  deps: Deps,
  caller: Caller,
  useCase: (work: Work) => Promise<T> | T,
): Promise<T> {
  const startedAt = performance.now();
  const onEnded = (outcome: CommitOutcome) =>
    deps.onEnded?.(outcome, (performance.now() - startedAt) / 1_000);
  const unitOfWork = emptyUnitOfWork();
  let startedTrx: Promise<Knex.Transaction> | undefined;
  // `deps.db.transaction()` would leave a rejection unhandled when ROLLBACK fails.
  const trx = () => (startedTrx ??= transaction.start(deps.db) as Promise<Knex.Transaction>);
  try {
    const result = await useCase(createWork(deps, caller, unitOfWork, trx));
    if (unitOfWork.audit.length === 0) throw new Error('A commit must leave an audit entry');
    assertResult(caller, unitOfWork);
    for (const [claim, recordId] of unitOfWork.results)
      await completeClaim(await trx(), claim, recordId);
    const changedAccess = accessTopics(unitOfWork.audit);
    for (const topic of changedAccess) unitOfWork.topics.add(topic);
    const openTrx = await startedTrx;
    await writeUnitOfWork(openTrx ?? deps.db, unitOfWork, { isLast: openTrx !== undefined });
    await openTrx?.commit();
    // Knex's `commit` resolves even when COMMIT fails; this promise rejects then.
    await openTrx?.executionPromise;
    if (unitOfWork.outbox.length > 0) deps.dispatcher.onCommitted(unitOfWork.outbox);
    if (unitOfWork.events.length > 0) deps.onEventsCommitted();
    if (unitOfWork.awaitsSlot) deps.onSlotAwaited();
    for (const report of unitOfWork.reports) report();
    deps.onChanged([...unitOfWork.changes.flatMap(({ topics }) => topics), ...changedAccess]);
    onEnded('committed');
    return result;
  } catch (error) {
    // When the connection failed, the server has rolled back already.
    await (await startedTrx?.catch(() => undefined))?.rollback().catch(() => undefined);
    const refusal =
      (error as { code?: unknown }).code === NO_CHANGE ? new NoChange() : asRefusal(error);
    onEnded(refusal instanceof AppError || refusal instanceof NoChange ? 'refused' : 'failed');
    throw refusal;
  }
}

function createWork(
  deps: Deps,
  caller: Caller,
  unitOfWork: UnitOfWork,
  trx: () => Promise<Knex.Transaction>,
): Work {
  const { ids } = deps;
  const now = new Date();
  return {
    now,
    trx,
    insert(model, row) {
      const record = model.fromJson(row, { skipValidation: true });
      unitOfWork.inserts.push(record);
      return record as InstanceType<typeof model>;
    },
    change: (change) => void unitOfWork.changes.push(change),
    audit(action, subject, detail = {}) {
      const { before, after, outcome, notBefore = now } = detail;
      const { tenantId = caller.tenantId, actor = caller } = detail;
      unitOfWork.audit.push({
        id: ids.next('aud'),
        tenantId,
        actorId: actor.actorId,
        via: viaOf(actor, tenantId),
        action,
        outcome: outcome ?? 'done',
        subject,
        before: before ?? null,
        after: after ?? null,
        requestId: caller.requestId,
        address: actor.address,
        at: notBefore > now ? notBefore : now,
      });
    },
    emit(type, subject, data, { tenantId = caller.tenantId, actor = caller } = {}) {
      unitOfWork.events.push({
        id: ids.next('evt'),
        type,
        tenantId,
        subject,
        actorId: actor.actorId,
        data,
      });
    },
    as: (other) => createWork(deps, other, unitOfWork, trx),
    result: (recordId) =>
      void (caller.idempotency && unitOfWork.results.set(caller.idempotency, recordId)),
    dispatch: (task) => addTask(deps, unitOfWork, task, now),
    awaitSlot: () => void (unitOfWork.awaitsSlot = true),
    onCommitted: (report) => void unitOfWork.reports.push(report),
  };
}

/** A request with an `Idempotency-Key` must name its result. */
function assertResult({ idempotency }: Caller, { results }: UnitOfWork): void {
  if (idempotency && !results.has(idempotency))
    throw new Error('The result of a request with an Idempotency-Key is missing');
}

async function completeClaim(trx: Knex.Transaction, claim: IdempotencyClaim, recordId: string) {
  if (await completeKey(trx, claim, recordId)) return;
  throw new AppError(
    'idempotency_in_progress',
    'Another request with this Idempotency-Key took over.',
  );
}
