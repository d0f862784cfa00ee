import { Model, snakeCaseMappers } from 'objection';
import type { Permission } from '../../domain/access/permissions.ts';

/** A row of `roles`. Built-in roles are defined in `domain/access/roles.ts`. */
export class CustomRole extends Model {
  static override tableName = 'roles';
  static override jsonAttributes = [];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare name: string;
  declare permissions: Permission[];
  /** Patterns of job types. */
  declare jobTypes: string[];
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
