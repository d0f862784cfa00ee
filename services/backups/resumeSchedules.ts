import type { Transaction } from 'objection';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { nextDueOf } from '../../domain/schedules/schedules.ts';

/** Schedules that came back are due from now on; what lay between is past. */
export async function resumeSchedules(
  trx: Knex | Transaction,
  schedules: readonly { id: string; gone: boolean }[],
  now: Date,
): Promise<void> {
  const found = await Schedule.query(trx).findByIds(
    schedules.filter(({ gone }) => !gone).map(({ id }) => id),
  );
  const due = found.map((schedule) =>
    schedule.deletedAt === null ? nextDueOf(schedule, now) : null,
  );
  await trx.raw(
    'UPDATE schedules AS s SET next_due_at = d.due FROM unnest(?::text[], ?::timestamptz[]) AS d (id, due) WHERE s.id = d.id',
    [found.map(({ id }) => id), due as unknown as string[]],
  );
}
