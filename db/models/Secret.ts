import { Model, snakeCaseMappers } from 'objection';
import type { SecretData } from '../../domain/secrets/secrets.ts';

/** A row of `secrets`. */
export class Secret extends Model implements SecretData {
  static override tableName = 'secrets';
  static override jsonAttributes = [];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare name: string;
  declare description: string;
  declare pools: string[];
  /** The value, encrypted with a master key. */
  declare sealed: string;
  declare valueSetAt: Date;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
