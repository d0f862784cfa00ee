/** SQL: whether the alias of a prefix has a prefix of the platform in a shared table. */
export const isShared = (prefix: string): string =>
  `${prefix}.space_key = ${prefix}.vrf_key || '/platform'`;

/** SQL: whether a prefix is one of a tenant in a shared table; with `vrf_key` an index by network has them. */
export const isOfTenant = (prefix: string): string =>
  `${prefix}.in_shared_table AND ${prefix}.tenant_id <> 'platform'`;

/**
 * SQL: `columns` of the rows of a table that count in a prefix: those of its space, or of all
 * tenants when the platform has it. `where` returns the condition on a row. Only one part runs.
 */
export const contentsOfPrefix = (
  prefix: string,
  table: string,
  columns: string,
  where: (row: string) => string,
): string => `
  SELECT ${columns} FROM ${table} AS own WHERE NOT (${isShared(prefix)}) AND own.space_key = ${prefix}.space_key AND ${where('own')}
  UNION ALL SELECT ${columns} FROM ${table} AS of_all WHERE ${isShared(prefix)} AND of_all.vrf_key = ${prefix}.vrf_key AND ${where('of_all')}`;
