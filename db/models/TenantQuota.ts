import { Model, snakeCaseMappers } from 'objection';
import type { QuotaOverrides } from '../../domain/access/quotas.ts';

/** A row of `tenant_quotas`: the limits that the platform has set for a tenant. */
export class TenantQuota extends Model {
  static override tableName = 'tenant_quotas';
  static override idColumn = 'tenant_id';
  static override jsonAttributes = ['limits'];
  static override columnNameMappers = snakeCaseMappers();

  declare tenantId: string;
  declare limits: QuotaOverrides;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
