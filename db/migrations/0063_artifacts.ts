import type { Knex } from 'knex';

/**
 * Files that attempts of runners have left. Their content is in the store of backups, sealed with a key
 * of its own. `artifact_removals` names what is to be removed from a store: a trigger adds what no row
 * refers to any more, and an upload is noted before it starts, so that an abandoned one is removed too.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE job_artifacts (
      job_id     text COLLATE "C" NOT NULL REFERENCES jobs ON DELETE CASCADE DEFERRABLE,
      name       text COLLATE "C" NOT NULL,
      attempt    integer NOT NULL,
      bytes      integer NOT NULL,
      sha256     text COLLATE "C" NOT NULL,
      store      text COLLATE "C" NOT NULL,
      object     text COLLATE "C" NOT NULL,
      sealed_key text NOT NULL,
      created_at timestamptz NOT NULL,
      PRIMARY KEY (job_id, name)
    );
    CREATE TABLE artifact_removals (
      store     text COLLATE "C" NOT NULL,
      object    text COLLATE "C" NOT NULL,
      due_at    timestamptz NOT NULL,
      PRIMARY KEY (object)
    );
    CREATE INDEX artifact_removals_due ON artifact_removals (due_at);
    CREATE FUNCTION remove_artifact() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'DELETE' OR NEW.object <> OLD.object THEN
        INSERT INTO artifact_removals (store, object, due_at) VALUES (OLD.store, OLD.object, now())
        ON CONFLICT (object) DO UPDATE SET due_at = now();
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER remove_artifact AFTER DELETE OR UPDATE ON job_artifacts
      FOR EACH ROW EXECUTE FUNCTION remove_artifact();
  `);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TABLE job_artifacts, artifact_removals; DROP FUNCTION remove_artifact()');
}
