import type { EventData, EventType } from '../../domain/events/events.ts';
import type { Actor } from '../../domain/shared/caller.ts';
import type { Work } from './commit.ts';
import type { Subject } from './unitOfWork.ts';

type Options<R, T extends EventType> = {
  /** Subject type and prefix of the audit actions, for example `webhook`. */
  type: string;
  /** What audit entries keep of a record: never secrets. */
  auditView: (record: R) => object;
  /** Events of the three standard changes. A change without an event type emits none. */
  events?: { created?: T; updated?: T; deleted?: T };
  eventData?: (record: R) => EventData<T>;
};

type Details = {
  /** Added to `after` of the audit entry. */
  extra?: object;
  /** Tenant of the audit entry and the event; the caller's without this. */
  tenantId?: string;
  /** The actor of the audit entry and the event; the caller without this. */
  actor?: Actor;
};

/**
 * Records changes of one kind of record in a commit: the audit entry and the event of each change,
 * together. `created` writes the action `<type>.create` with `after`, `updated` `<type>.update` with
 * both states, `deleted` `<type>.delete` with `before`.
 */
export function recordOf<R extends { id: string }, T extends EventType = never>({
  type,
  auditView,
  events = {},
  eventData,
}: Options<R, T>) {
  const subject = ({ id }: { id: string }): Subject => ({ type, id });

  /** Emits an event about the record; its data comes from `eventData`. */
  function emit(
    work: Work,
    event: T | undefined,
    record: R,
    tenantId?: string,
    actor?: Actor,
  ): void {
    if (event && eventData) work.emit(event, subject(record), eventData(record), tenantId, actor);
  }

  return {
    subject,
    auditView,
    emit,

    created(work: Work, record: R, { extra, tenantId }: Details = {}): void {
      const after = { ...auditView(record), ...extra };
      work.audit(`${type}.create`, subject(record), { after, ...(tenantId && { tenantId }) });
      emit(work, events.created, record, tenantId);
    },

    updated(work: Work, before: R, after: R, { extra, tenantId }: Details = {}): void {
      work.audit(`${type}.update`, subject(after), {
        before: auditView(before),
        after: { ...auditView(after), ...extra },
        ...(tenantId && { tenantId }),
      });
      emit(work, events.updated, after, tenantId);
    },

    deleted(work: Work, record: R, { tenantId, actor }: Omit<Details, 'extra'> = {}): void {
      work.audit(`${type}.delete`, subject(record), {
        before: auditView(record),
        ...(tenantId && { tenantId }),
        ...(actor && { actor }),
      });
      emit(work, events.deleted, record, tenantId, actor);
    },

    /** Records another action, `<type>.<verb>`; `before` and `after` are optional. */
    acted(
      work: Work,
      verb: string,
      record: R,
      {
        before,
        after,
        extra,
        tenantId,
      }: { before?: R; after?: R } & Pick<Details, 'extra' | 'tenantId'> = {},
    ): void {
      work.audit(`${type}.${verb}`, subject(record), {
        ...(before && { before: auditView(before) }),
        ...((after ?? extra) && { after: { ...(after && auditView(after)), ...extra } }),
        ...(tenantId && { tenantId }),
      });
    },
  };
}
