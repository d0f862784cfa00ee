import type { Knex } from 'knex';

/** Files that are taken in, and their rows: a row with an outcome is done, whatever becomes of the process. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(IMPORTS);
}

const IMPORTS = `
  CREATE TABLE imports (
    id         text COLLATE "C" PRIMARY KEY,
    tenant_id  text COLLATE "C" NOT NULL,
    job_id     text COLLATE "C" NOT NULL,
    resource   text COLLATE "C",
    dry_run    boolean NOT NULL,
    rows       integer NOT NULL,
    done       integer NOT NULL DEFAULT 0,
    authority  json NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL
  );
  CREATE INDEX imports_tenant ON imports (tenant_id, id DESC);
  CREATE INDEX imports_job ON imports (job_id);
  CREATE TABLE import_rows (
    import_id text COLLATE "C" NOT NULL,
    line      integer NOT NULL,
    mutation  json NOT NULL,
    outcome   text COLLATE "C" CHECK (outcome IN ('created', 'updated', 'deleted', 'invalid', 'conflict')),
    record_id text COLLATE "C",
    report    json,
    PRIMARY KEY (import_id, line)
  );
  CREATE INDEX import_rows_outcome ON import_rows (import_id, outcome, line);
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TABLE import_rows, imports');
}
