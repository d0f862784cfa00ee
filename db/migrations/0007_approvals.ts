import type { Knex } from 'knex';

/**
 * Approval requests. The content (`payload`, the bound job, `mutations`, `plan`) never changes.
 * `content_hash` is its hash under `content_key`, which is not shown: the content may hold secrets
 * that a plain hash would allow readers to guess. Each person decides once per request; a
 * cancellation is recorded next to the decisions. `check_at` is when the reconciler checks the
 * request next.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE TABLE approvals (
      id                 text COLLATE "C" PRIMARY KEY,
      tenant_id          text COLLATE "C" NOT NULL,
      site_id            text COLLATE "C",
      device_id          text COLLATE "C",
      type               text COLLATE "C" NOT NULL,
      title              text NOT NULL,
      payload            json NOT NULL,
      status             text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'expired', 'cancelled')),
      execution          text COLLATE "C" NOT NULL CHECK (execution IN ('none', 'queued', 'running', 'succeeded', 'failed', 'stale')),
      required_approvals integer NOT NULL CHECK (required_approvals BETWEEN 1 AND 5),
      approval_count     integer NOT NULL DEFAULT 0,
      job_type           text COLLATE "C",
      job_payload        json,
      mutations          json,
      plan               json,
      content_key        text NOT NULL,
      content_hash       text COLLATE "C" NOT NULL,
      expires_at         timestamptz NOT NULL,
      execute_at         timestamptz,
      reminders          integer NOT NULL DEFAULT 0,
      job_id             text COLLATE "C" REFERENCES jobs (id),
      error              json,
      difference         json,
      created_by         text COLLATE "C" NOT NULL,
      requester_names    jsonb NOT NULL,
      authority          json NOT NULL,
      closed_by          text COLLATE "C",
      close_comment      text,
      closed_at          timestamptz,
      executed_at        timestamptz,
      check_at           timestamptz NOT NULL,
      created_at         timestamptz NOT NULL,
      updated_at         timestamptz NOT NULL,
      version            integer NOT NULL DEFAULT 1,
      CHECK ((status = 'pending') = (closed_at IS NULL)),
      CHECK (execution = 'none' OR (status = 'approved' AND job_type IS NOT NULL)),
      CHECK (approval_count <= required_approvals),
      CHECK (status <> 'approved' OR approval_count = required_approvals),
      CHECK (execution NOT IN ('running', 'succeeded') OR job_id IS NOT NULL),
      CHECK ((mutations IS NULL) = (plan IS NULL))
    );
    CREATE INDEX approvals_tenant ON approvals (tenant_id, id DESC);
    CREATE INDEX approvals_tenant_status ON approvals (tenant_id, status, id DESC);
    CREATE INDEX approvals_site ON approvals (site_id, id DESC) WHERE site_id IS NOT NULL;
    CREATE INDEX approvals_device ON approvals (device_id, id DESC) WHERE device_id IS NOT NULL;
    CREATE INDEX approvals_status ON approvals (status, id DESC);
    CREATE INDEX approvals_type ON approvals (type, id DESC);
    CREATE INDEX approvals_execution ON approvals (execution, id DESC) WHERE execution <> 'none';
    CREATE INDEX approvals_created_by ON approvals (created_by, id DESC);
    CREATE INDEX approvals_unfinished ON approvals (check_at)
      WHERE status = 'pending' OR execution IN ('queued', 'running');

    -- A gateway may identify a user by any of these.
    CREATE INDEX users_email ON users (lower(email)) WHERE email IS NOT NULL;
    CREATE INDEX users_external_id ON users (lower(external_id)) WHERE external_id IS NOT NULL;

    CREATE TABLE approval_assignees (
      approval_id text COLLATE "C" NOT NULL REFERENCES approvals (id),
      kind        text COLLATE "C" NOT NULL CHECK (kind IN ('user', 'role')),
      assignee_id text COLLATE "C" NOT NULL,
      PRIMARY KEY (approval_id, kind, assignee_id)
    );
    CREATE INDEX approval_assignees_assignee ON approval_assignees (kind, assignee_id, approval_id DESC);

    CREATE TABLE approval_decisions (
      id           text COLLATE "C" PRIMARY KEY,
      approval_id  text COLLATE "C" NOT NULL REFERENCES approvals (id),
      actor_id     text COLLATE "C" NOT NULL,
      actor_names  jsonb NOT NULL,
      outcome      text COLLATE "C" NOT NULL CHECK (outcome IN ('approved', 'rejected', 'cancelled')),
      comment      text,
      content_hash text COLLATE "C" NOT NULL,
      decided_at   timestamptz NOT NULL
    );
    CREATE INDEX approval_decisions_approval ON approval_decisions (approval_id);
    CREATE UNIQUE INDEX approval_decisions_one_per_actor
      ON approval_decisions (approval_id, actor_id) WHERE outcome <> 'cancelled';

    CREATE TABLE approval_comments (
      approval_id text COLLATE "C" NOT NULL REFERENCES approvals (id),
      number      integer NOT NULL,
      actor_id    text COLLATE "C" NOT NULL,
      text        text NOT NULL,
      created_at  timestamptz NOT NULL,
      PRIMARY KEY (approval_id, number)
    );

    -- The result of a job inventory.apply, written with its changes. A repeated attempt finds it.
    CREATE TABLE inventory_apply_results (
      job_id     text COLLATE "C" PRIMARY KEY REFERENCES jobs (id),
      result     json NOT NULL,
      applied_at timestamptz NOT NULL
    );
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    `DROP INDEX users_email, users_external_id;
     DROP TABLE inventory_apply_results, approval_comments, approval_decisions, approval_assignees,
       approvals`,
  ));
