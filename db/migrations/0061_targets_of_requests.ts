import type { Knex } from 'knex';

/** What the jobs of a schedule, and the job of an approval request, are about: `{kind, id}`, or null. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE schedules ADD target json');
  await knex.raw('ALTER TABLE approvals ADD job_target json');
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('ALTER TABLE schedules DROP target');
  await knex.raw('ALTER TABLE approvals DROP job_target');
}
