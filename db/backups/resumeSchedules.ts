import type { Transaction } from 'objection';
import { nextOccurrenceOf } from '../../domain/schedules/schedules.ts';
import type { Knex } from '../core/knex.ts';
import { Schedule } from '../models/Schedule.ts';

/** Sets the next occurrence of restored schedules: occurrences before `now` do not run. */
export async function resumeSchedules(
  trx: Knex | Transaction,
  schedules: readonly { id: string; deleted: boolean }[],
  now: Date,
): Promise<void> {
  const restored = schedules.filter(({ deleted }) => !deleted).map(({ id }) => id);
  const found = await Schedule.query(trx).findByIds(restored);
  const next = found.map((schedule) =>
    schedule.deletedAt === null ? nextOccurrenceOf(schedule, now) : null,
  );
  await trx.raw(
    `UPDATE schedules AS s SET next_due_at = d.next
     FROM unnest(?::text[], ?::timestamptz[]) AS d (id, next) WHERE s.id = d.id`,
    [found.map(({ id }) => id), next as unknown as string[]],
  );
}
