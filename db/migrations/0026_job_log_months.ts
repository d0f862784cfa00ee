import type { Knex } from 'knex';

const COLUMNS = `
  job_id  text COLLATE "C" NOT NULL,
  line    integer NOT NULL,
  attempt integer NOT NULL,
  level   text COLLATE "C" NOT NULL CONSTRAINT job_logs_level_check CHECK (level IN ('debug', 'info', 'warn', 'error')),
  message text NOT NULL,
  data    json,
  at      timestamptz NOT NULL,
  PRIMARY KEY (job_id, line)`;

/**
 * `job_logs` is partitioned by the month in the id of the job, so that whole months can be dropped.
 * The lines that exist become the partition `job_logs_earlier` without being copied: it reaches to
 * the end of the month of the newest job. Lines outside of all months are in `job_logs_other`.
 *
 * Lines have no foreign key to jobs: a dropped month would lock `jobs`. They are written in the
 * statement that changes their job, and the purge deletes them before the job.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(FUNCTIONS);
  await knex.raw(`
    ALTER TABLE job_logs DROP CONSTRAINT IF EXISTS job_logs_job_id_fkey;
    ALTER TABLE job_logs RENAME TO job_logs_earlier;
    ALTER TABLE job_logs_earlier RENAME CONSTRAINT job_logs_pkey TO job_logs_earlier_pkey;
    CREATE TABLE job_logs (${COLUMNS}) PARTITION BY RANGE (job_id);
    CREATE TABLE job_logs_other PARTITION OF job_logs DEFAULT;
    DO $$
    DECLARE
      newest timestamptz := greatest(now(),
        (SELECT time_of_job_id(max(job_id)) FROM job_logs_earlier WHERE job_id LIKE 'job\\_%'));
    BEGIN
      EXECUTE format(
        'ALTER TABLE job_logs ATTACH PARTITION job_logs_earlier FOR VALUES FROM (MINVALUE) TO (%L)',
        first_job_id(month_after(newest, 1)));
      PERFORM create_job_log_month(month_after(newest, 1));
      PERFORM create_job_log_month(month_after(newest, 2));
    END $$;
  `);
}

/** Ids of jobs are `job_` and a UUIDv7 in base 32, whose first 10 characters are its milliseconds. */
const FUNCTIONS = `
  CREATE FUNCTION first_job_id(moment timestamptz) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
  DECLARE
    digits CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
    ms bigint := floor(extract(epoch FROM moment) * 1000);
    id text := '';
  BEGIN
    FOR i IN 1..10 LOOP
      id := substr(digits, (ms & 31)::integer + 1, 1) || id;
      ms := ms >> 5;
    END LOOP;
    RETURN 'job_' || id || repeat('0', 16);
  END $$;

  CREATE FUNCTION time_of_job_id(id text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS $$
  DECLARE
    digits CONSTANT text := '0123456789abcdefghjkmnpqrstvwxyz';
    ms bigint := 0;
  BEGIN
    FOR i IN 5..14 LOOP
      ms := ms * 32 + greatest(strpos(digits, substr(id, i, 1)) - 1, 0);
    END LOOP;
    RETURN to_timestamp(ms / 1000.0);
  END $$;

  CREATE FUNCTION month_after(moment timestamptz, months integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT (date_trunc('month', moment AT TIME ZONE 'UTC') + make_interval(months => months)) AT TIME ZONE 'UTC'
  $$;

  CREATE FUNCTION create_job_log_month(moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    lower CONSTANT text := first_job_id(month_after(moment, 0));
    upper CONSTANT text := first_job_id(month_after(moment, 1));
    name CONSTANT text := 'job_logs_' || to_char(moment AT TIME ZONE 'UTC', 'YYYY_MM');
  BEGIN
    IF to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE %I (LIKE job_logs INCLUDING ALL)', name);
    -- A partition cannot be added while the default one has rows of it.
    EXECUTE format('WITH moved AS (DELETE FROM job_logs_other WHERE job_id >= %L AND job_id < %L RETURNING *)
      INSERT INTO %I SELECT * FROM moved', lower, upper, name);
    EXECUTE format('ALTER TABLE job_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, lower, upper);
  END $$;
`;

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    ALTER TABLE job_logs RENAME TO job_logs_by_month;
    ALTER TABLE job_logs_by_month RENAME CONSTRAINT job_logs_pkey TO job_logs_by_month_pkey;
    CREATE TABLE job_logs (${COLUMNS});
    INSERT INTO job_logs SELECT * FROM job_logs_by_month;
    ALTER TABLE job_logs ADD CONSTRAINT job_logs_job_id_fkey FOREIGN KEY (job_id)
      REFERENCES jobs (id) ON DELETE CASCADE DEFERRABLE INITIALLY IMMEDIATE;
    DROP TABLE job_logs_by_month;
    DROP FUNCTION create_job_log_month, month_after, time_of_job_id, first_job_id;
  `));
