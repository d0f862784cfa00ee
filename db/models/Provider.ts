import { Model, snakeCaseMappers } from 'objection';
import type { ProviderKind } from '../../domain/auth/providers.ts';
import type { Knex } from '../core/knex.ts';
import { isSameName } from '../core/sameName.ts';

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

/** True if another provider has this name (`isSameName`). Requires `lockAccess`, so that no other gets it until the commit. */
export async function isProviderNameTaken(trx: Knex, name: string, id?: string): Promise<boolean> {
  const query = Provider.query(trx).whereRaw(isSameName('name'), [name]);
  if (id !== undefined) void query.whereNot({ id });
  return (await query.first().select('id')) !== undefined;
}
