import type { EventData, EventType } from '../../domain/events/events.ts';
import type { Attribution, Work } from './commit.ts';
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

/** `extra` is added to `after` of the audit entry. */
type Details = Attribution & { extra?: object };

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
  function emit(work: Work, event: T | undefined, record: R, attribution: Attribution = {}): void {
    if (event && eventData) work.emit(event, subject(record), eventData(record), attribution);
  }

  return {
    subject,
    auditView,
    emit,

    created(work: Work, record: R, { extra, ...attribution }: Details = {}): void {
      const after = { ...auditView(record), ...extra };
      work.audit(`${type}.create`, subject(record), { after, ...attribution });
      emit(work, events.created, record, attribution);
    },

    updated(work: Work, before: R, after: R, { extra, ...attribution }: Details = {}): void {
      work.audit(`${type}.update`, subject(after), {
        before: auditView(before),
        after: { ...auditView(after), ...extra },
        ...attribution,
      });
      emit(work, events.updated, after, attribution);
    },

    deleted(work: Work, record: R, attribution: Attribution = {}): void {
      work.audit(`${type}.delete`, subject(record), { before: auditView(record), ...attribution });
      emit(work, events.deleted, record, attribution);
    },

    /** Records another action, `<type>.<verb>`; `before` and `after` are optional. */
    acted(
      work: Work,
      verb: string,
      record: R,
      { before, after, extra, ...attribution }: { before?: R; after?: R } & Details = {},
    ): void {
      work.audit(`${type}.${verb}`, subject(record), {
        before: before && auditView(before),
        after: (after ?? extra) && { ...(after && auditView(after)), ...extra },
        ...attribution,
      });
    },
  };
}
