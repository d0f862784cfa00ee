import { transaction, type Transaction } from 'objection';
import type { Knex } from './knex.ts';
import type { Caller, IdempotencyClaim } from '../domain/caller.ts';
import { AppError } from '../domain/errors.ts';
import type { EventType } from '../domain/events.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import { fulfilKey } from './idempotency.ts';
import {
  OUTBOX_TOPIC, emptyTrail, writeTrail, type AuditOutcome, type OutboxRow, type OwedTask, type Subject, type Trail,
} from './trail.ts';

type AuditDetail = { before?: object; after?: object; outcome?: AuditOutcome; tenantId?: string };

/** What a use case can do inside its transaction. */
export type Work<Task extends OwedTask> = {
  trx: Transaction;
  now: Date;
  /** Records who did what to which record. */
  audit(action: string, subject: Subject, detail?: AuditDetail): void;
  /** Records an event that consumers are told about. */
  emit(type: EventType, subject: Subject, data: object): void;
  /** Owes a call to Temporal: tried right after the commit, then by the relay until it succeeds. */
  dispatch(task: Task): void;
  /** Tells other processes, when the transaction commits, that `topic` changed. */
  notify(topic: string): void;
};

/** Who writes: a caller, whose commits must leave an audit entry, or a run that notes its own progress. */
export type Writer = Caller | { kind: 'run'; tenantId: string };

export type Commit<Task extends OwedTask> = <T>(
  writer: Writer,
  useCase: (work: Work<Task>) => Promise<T>,
) => Promise<T>;

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
  /** How long the relay leaves a new outbox row to the process that wrote it. */
  dispatchGraceMs: number;
};

/**
 * The only door to a write: one transaction that holds the records, their audit entries, their events and
 * the calls to Temporal that must follow.
 */
export const createCommit = <Task extends OwedTask>(deps: Deps): Commit<Task> => async (writer, useCase) => {
  const now = deps.clock.now();
  const trail = emptyTrail();
  const actor = writer.kind === 'run' ? null : writer;

  const result = await transaction(deps.db, async (trx) => {
    const done = await useCase({
      trx,
      now,
      audit(action, subject, { before, after, outcome, tenantId } = {}) {
        if (!actor) throw new Error(`A run's note has no audit entry: ${action}`);
        trail.audit.push({
          id: deps.ids.next('aud'), tenantId: tenantId ?? actor.tenantId, actorId: actor.actorId, via: actor.kind,
          action, outcome: outcome ?? 'done', subject, before: before ?? null, after: after ?? null,
          requestId: actor.requestId, address: actor.address, at: now,
        });
      },
      emit(type, subject, data) {
        trail.events.push({
          id: deps.ids.next('evt'), type, tenantId: writer.tenantId, subject, actorId: actor?.actorId ?? 'system',
          data, at: now,
        });
      },
      dispatch(task) {
        const quick = deps.dispatch.isQuick();
        const availableAt = quick ? new Date(now.getTime() + deps.dispatchGraceMs) : now;
        if (!quick) trail.topics.add(OUTBOX_TOPIC);
        trail.outbox.push({ id: deps.ids.next('out'), task, availableAt, at: now });
      },
      notify: (topic) => void trail.topics.add(topic),
    });
    if (actor && trail.audit.length === 0) throw new Error('A commit for a caller must leave an audit entry');
    if (actor?.idempotency) await fulfilClaim(trx as Knex.Transaction, actor.idempotency, trail);
    await writeTrail(trx as Knex.Transaction, trail);
    return done;
  });
  if (trail.outbox.length > 0) deps.dispatch.committed(trail.outbox);
  return result;
};

async function fulfilClaim(trx: Knex.Transaction, claim: IdempotencyClaim, trail: Trail) {
  if (await fulfilKey(trx, claim, trail.audit[0]?.subject.id ?? '')) return;
  throw new AppError('idempotency_in_progress', 'Another request with this Idempotency-Key took over.');
}
