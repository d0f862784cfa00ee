import { Model, snakeCaseMappers } from 'objection';
import { LOCAL_PROVIDER } from '../../domain/auth/providers.ts';
import type { Knex } from '../core/knex.ts';

/** A row of `users`: a person with a local account, or one that an identity provider vouches for. */
export class User extends Model {
  static override tableName = 'users';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  /** `local`, or the provider that vouches. */
  declare providerId: string;
  /** The key of the person at the provider; never a name or an e-mail address, which may pass to somebody else. */
  declare externalId: string | null;
  /** Groups at the provider, as of the last login. */
  declare externalGroups: string[];
  declare username: string;
  declare displayName: string;
  declare email: string | null;
  /** Where the record stands, and where a session of this user begins. */
  declare tenantId: string;
  declare enabled: boolean;
  /** argon2id in PHC form. */
  declare passwordHash: string | null;
  declare mustChangePassword: boolean;
  declare lastLoginAt: Date | null;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}

/** For a change that does not read the row first. */
export const nextVersion = (): number => User.raw('version + 1') as unknown as number;

/** The local account of this name, without regard to case. */
export const findLocalUser = (db: Knex, username: string) =>
  User.query(db)
    .where({ provider_id: LOCAL_PROVIDER })
    .whereRaw('lower(username) = lower(?)', [username])
    .first();
