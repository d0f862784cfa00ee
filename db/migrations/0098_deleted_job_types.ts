import type { Knex } from 'knex';

/**
 * A type of runners could be deleted while a job of it was created, which then waited for a runner for ever. The
 * job now locks its type, as a foreign key would: the deletion waits for it and finds it. Finished jobs remain
 * without their type, so there is no foreign key.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION share_job_type() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      -- A restore, or its preview: its finished jobs need no type, and it ends the others.
      IF current_setting('holdfast.restoring', true) = 'on' THEN RETURN NULL; END IF;
      PERFORM FROM job_types WHERE name = NEW.type FOR KEY SHARE;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'the job type was deleted' USING ERRCODE = 'HF005';
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER job_type_shared AFTER INSERT ON jobs
      FOR EACH ROW WHEN (NEW.pool <> '') EXECUTE FUNCTION share_job_type()`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TRIGGER job_type_shared ON jobs; DROP FUNCTION share_job_type');
}
