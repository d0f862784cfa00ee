import { Model, snakeCaseMappers } from 'objection';
import type { RetentionOverrides } from '../../domain/retention/retention.ts';

/** A row of `retention_settings`: the periods of a tenant that differ from the defaults. */
export class RetentionSettings extends Model {
  static override tableName = 'retention_settings';
  static override idColumn = 'tenant_id';
  static override jsonAttributes = ['days', 'jobTypes'];
  static override columnNameMappers = snakeCaseMappers();

  declare tenantId: string;
  declare days: RetentionOverrides['days'];
  declare jobTypes: RetentionOverrides['jobTypes'];
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
