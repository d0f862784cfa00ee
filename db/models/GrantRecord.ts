import { Model, snakeCaseMappers } from 'objection';
import type { Level } from '../../domain/access/scope.ts';

/** A row of `grants`: a role assignment (of a user) or provider mapping (of a provider's group). */
export class GrantRecord extends Model {
  static override tableName = 'grants';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare kind: 'assignment' | 'mapping';
  declare userId: string | null;
  declare providerId: string | null;
  declare externalGroup: string | null;
  declare roleId: string;
  declare level: Level;
  /** The scope that the grant covers: the narrowest of the three ids. */
  declare tenantId: string;
  declare siteId: string | null;
  declare deviceId: string | null;
  declare createdBy: string;
  declare createdAt: Date;
}
