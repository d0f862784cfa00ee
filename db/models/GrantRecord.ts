import { Model, snakeCaseMappers } from 'objection';
import type { Level } from '../../domain/access/scope.ts';

/** A row of `grants`: a role given to a user (assignment) or to a group at a provider (mapping). */
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
  /** Where the grant stands, which is what it covers: the narrowest of the three. */
  declare tenantId: string;
  declare siteId: string | null;
  declare deviceId: string | null;
  declare createdBy: string;
  declare createdAt: Date;
}
