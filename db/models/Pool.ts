import { Model, snakeCaseMappers } from 'objection';
import type { PoolData } from '../../domain/runners/records.ts';

/** A row of `pools`. */
export class Pool extends Model implements PoolData {
  static override tableName = 'pools';
  static override idColumn = 'name';
  static override columnNameMappers = snakeCaseMappers();

  declare name: string;
  declare description: string;
  declare acceptTypes: string[];
  declare tenantSharePercent: number | null;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;

  /** The name, as audit entries and events call it. */
  get id(): string {
    return this.name;
  }
}
