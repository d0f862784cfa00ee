import { Model, snakeCaseMappers } from 'objection';
import type { ProviderKind } from '../../domain/auth/providers.ts';

/** A row of `providers`: an identity provider. */
export class Provider extends Model {
  static override tableName = 'providers';
  static override jsonAttributes = ['config', 'secrets'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare kind: ProviderKind;
  declare name: string;
  declare enabled: boolean;
  declare config: Record<string, unknown>;
  /** Encrypted secret fields of the configuration, by field name. */
  declare secrets: Record<string, string>;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
