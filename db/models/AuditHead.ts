import { Model, raw, snakeCaseMappers, type QueryBuilder } from 'objection';
import type { Knex } from '../core/knex.ts';

/** The last sealed entry of a tenant's audit chain: a row of `audit_heads`. Its id is that of the tenant. */
export class AuditHead extends Model {
  static override tableName = 'audit_heads';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare position: number;
  declare hash: Buffer;

  /** The rows of the table, which has no column `id`. */
  static rows(db: Knex): QueryBuilder<AuditHead> {
    return AuditHead.query(db).from(
      raw('(SELECT tenant_id AS id, tenant_id, position, hash FROM audit_heads) AS audit_heads'),
    );
  }
}
