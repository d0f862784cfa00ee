/** The hashed content of an entry: every column except the seal; `before` and `after` as the stored text. */
export const CONTENT_SQL = `json_build_array(id, tenant_id, actor_id, via, action, outcome, subject_type,
  subject_id, before::text, after::text, request_id, address, extract(epoch FROM at)::text
)::text AS content`;
