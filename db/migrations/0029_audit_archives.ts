import type { Knex } from 'knex';

/**
 * Archives of the audit log. An archive has the entries of a tenant's chain from `first_position` to
 * `position`; it follows the archive before it. `checkpoint_at` is set when the archive was read back
 * and an audit entry, the checkpoint, says where its chain ends.
 *
 * Entries are deleted by `delete_archived_audit_entries` only, and only up to a checkpoint: its entry
 * must be in the chain, after the entries that it covers, and must match the archive.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE audit_archives (
      id             text COLLATE "C" PRIMARY KEY,
      tenant_id      text COLLATE "C" NOT NULL,
      job_id         text COLLATE "C" NOT NULL,
      status         text COLLATE "C" NOT NULL CHECK (status IN ('writing', 'checkpointed', 'completed')),
      first_position bigint NOT NULL,
      position       bigint NOT NULL CHECK (position >= first_position),
      previous_hash  bytea NOT NULL,
      hash           bytea NOT NULL,
      first_at       timestamptz NOT NULL,
      last_at        timestamptz NOT NULL,
      last_id        text COLLATE "C" NOT NULL,
      store          text COLLATE "C" NOT NULL CHECK (store IN ('folder', 's3')),
      archive        text NOT NULL,
      attempts       integer NOT NULL,
      size_bytes     bigint,
      checkpoint_at  timestamptz,
      created_at     timestamptz NOT NULL,
      updated_at     timestamptz NOT NULL,
      UNIQUE (tenant_id, first_position),
      CHECK ((status = 'writing') = (checkpoint_at IS NULL)),
      CHECK (checkpoint_at IS NULL OR size_bytes IS NOT NULL)
    );
    CREATE INDEX audit_archives_tenant ON audit_archives (tenant_id, id DESC);
    CREATE UNIQUE INDEX audit_archives_unfinished ON audit_archives (tenant_id)
      WHERE status <> 'completed';
    CREATE UNIQUE INDEX audit_archives_checkpoints ON audit_archives (tenant_id, position)
      WHERE checkpoint_at IS NOT NULL;

    CREATE FUNCTION audit_archives_are_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'an audit archive with a checkpoint is not changed'
        USING ERRCODE = 'insufficient_privilege';
    END $$;
    CREATE TRIGGER audit_archives_no_delete BEFORE DELETE ON audit_archives
      FOR EACH ROW WHEN (OLD.checkpoint_at IS NOT NULL) EXECUTE FUNCTION audit_archives_are_fixed();
    CREATE TRIGGER audit_archives_no_truncate BEFORE TRUNCATE ON audit_archives
      FOR EACH STATEMENT EXECUTE FUNCTION audit_archives_are_fixed();
    CREATE TRIGGER audit_archives_no_change
      BEFORE UPDATE OF id, tenant_id, first_position, position, previous_hash, hash, first_at, last_at,
                       last_id, store, archive, checkpoint_at ON audit_archives
      FOR EACH ROW WHEN (OLD.checkpoint_at IS NOT NULL) EXECUTE FUNCTION audit_archives_are_fixed();
  `);
  await knex.raw(FUNCTIONS);
}

export const FUNCTIONS = `
  CREATE FUNCTION has_audit_checkpoint(a audit_archives) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT a.checkpoint_at IS NOT NULL AND EXISTS (
      SELECT FROM audit_entries AS c
      WHERE c.subject_type = 'audit-archive' AND c.subject_id = a.id
        AND c.action = 'audit.checkpoint' AND c.outcome = 'done'
        AND c.tenant_id = a.tenant_id AND c.position > a.position
        AND c.after ->> 'tenantId' = a.tenant_id
        AND c.after ->> 'position' = a.position::text
        AND c.after ->> 'hash' = encode(a.hash, 'hex')
        AND c.after ->> 'archive' = a.archive);
  $$;

  CREATE FUNCTION audit_entries_only_archived() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    archived audit_archives;
  BEGIN
    IF NOT EXISTS (SELECT FROM removed) THEN RETURN NULL; END IF;
    SELECT * INTO archived FROM audit_archives
      WHERE id = current_setting('holdfast.audit_archive', true);
    IF archived.id IS NULL OR NOT has_audit_checkpoint(archived) OR EXISTS (
      SELECT FROM removed AS r WHERE r.tenant_id <> archived.tenant_id OR r.position IS NULL
        OR r.position NOT BETWEEN archived.first_position AND archived.position)
    THEN
      RAISE EXCEPTION 'audit_entries is append-only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
  END $$;
  DROP TRIGGER audit_entries_no_delete ON audit_entries;
  CREATE TRIGGER audit_entries_no_delete AFTER DELETE ON audit_entries REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION audit_entries_only_archived();

  CREATE FUNCTION delete_archived_audit_entries(archive_id text, most integer) RETURNS bigint
  LANGUAGE plpgsql AS $$
  DECLARE
    archived audit_archives;
    hold legal_holds;
    batch text[];
    deleted bigint;
  BEGIN
    SELECT * INTO archived FROM audit_archives WHERE id = archive_id FOR UPDATE;
    IF archived.id IS NULL OR NOT has_audit_checkpoint(archived) THEN
      RAISE EXCEPTION 'the archive has no checkpoint' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF archived.first_position <> 1 + coalesce((
        SELECT max(position) FROM audit_archives
        WHERE tenant_id = archived.tenant_id AND position < archived.first_position
          AND checkpoint_at IS NOT NULL), 0)
      OR EXISTS (SELECT FROM audit_entries WHERE tenant_id = archived.tenant_id
        AND position = archived.position AND hash <> archived.hash)
    THEN
      RAISE EXCEPTION 'the archive is not a part of the chain' USING ERRCODE = 'insufficient_privilege';
    END IF;
    batch := ARRAY(
      SELECT id FROM audit_entries WHERE tenant_id = archived.tenant_id
        AND position BETWEEN archived.first_position AND archived.position
      ORDER BY position LIMIT most);
    PERFORM share_hold_lock(ARRAY[archived.tenant_id]);
    SELECT h.* INTO hold FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h) AND (
      h.subject_id IS NULL AND h.tenant_id IN (archived.tenant_id, 'platform')
      OR EXISTS (SELECT FROM audit_entries AS e WHERE e.id = ANY (batch) AND (
        (e.subject_type, e.subject_id) = (h.subject_type, h.subject_id)
        OR h.subject_type = 'user' AND e.actor_id = h.subject_id
          AND h.tenant_id IN (e.tenant_id, 'platform')))) LIMIT 1;
    PERFORM refuse_if_held(hold);
    PERFORM set_config('holdfast.audit_archive', archived.id, true);
    DELETE FROM audit_entries WHERE id = ANY (batch);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM set_config('holdfast.audit_archive', '', true);
    RETURN deleted;
  END $$;
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    DROP FUNCTION audit_entries_only_archived CASCADE;
    CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries
      FOR EACH ROW EXECUTE FUNCTION audit_entries_are_append_only();
    DROP FUNCTION delete_archived_audit_entries;
    DROP TABLE audit_archives CASCADE;
    DROP FUNCTION audit_archives_are_fixed;
  `);
}
