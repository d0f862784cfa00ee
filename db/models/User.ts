import { Model, snakeCaseMappers, type QueryBuilder } from 'objection';
import { oneTimePasswordEnd } from '../../domain/auth/oneTimePasswords.ts';
import { LOCAL_PROVIDER, NO_PROVIDER } from '../../domain/auth/providers.ts';
import type { Knex } from '../core/knex.ts';
import { likeAnyCase } from '../core/like.ts';
import { isSameName } from '../core/sameName.ts';
import { unicodeForms } from '../../domain/shared/unicodeForms.ts';

/**
 * A row of `users`: a local account, a person authenticated by an identity provider, or a service account.
 */
export class User extends Model {
  static override tableName = 'users';
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  /** `local`, the id of the identity provider, or `NO_PROVIDER` for a service account. */
  declare providerId: string;
  /** Stable id of the person at the provider. Names and e-mail addresses can be reassigned. */
  declare externalId: string | null;
  /** Groups at the provider, as of the last login. */
  declare externalGroups: string[];
  declare username: string;
  declare displayName: string;
  declare email: string | null;
  /** The person who is responsible for a service account. */
  declare ownerId: string | null;
  /** The tenant that the record belongs to, and the default tenant of this user's sessions. */
  declare tenantId: string;
  declare enabled: boolean;
  /** argon2id in PHC string format; null for accounts of identity providers. */
  declare passwordHash: string | null;
  declare mustChangePassword: boolean;
  /** Until when a password that must be changed is valid. See `passwordEndOf`. */
  declare passwordExpiresAt: Date | null;
  declare lastLoginAt: Date | null;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}

/** SQL expression for `version` in an update that does not read the row first. */
export const nextVersion = () => User.raw('version + 1');

/** Narrows a query to users with this name (`isSameName`). */
export const whereUsername = (query: QueryBuilder<User>, username: string): void =>
  void query.whereRaw(isSameName('username'), [username]);

/** Narrows a query to users who had this group at their last login. */
export const whereGroup = (query: QueryBuilder<User>, group: string): void =>
  void query.whereRaw('external_groups && ?::text[]', [unicodeForms(group)]);

/** SQL: the text by which users are found; the expression of the index `users_search`. */
export const USER_TEXT = "lower(username || ' ' || display_name)";

/**
 * SQL: where the account of this table or alias is known by its user name; null for local accounts.
 * Others may have equal names: providers choose them, and service accounts are named in their tenants.
 */
export const providerName = (users: string): string =>
  `CASE ${users}.provider_id WHEN '${LOCAL_PROVIDER}' THEN NULL WHEN '${NO_PROVIDER}' THEN 'service account'
     ELSE coalesce((SELECT named.name FROM providers AS named WHERE named.id = ${users}.provider_id),
       ${users}.provider_id) END`;

/** Narrows a query to users with a text in the user name or the display name. */
export function whereUserText(query: QueryBuilder<User>, text: string): void {
  const { sql, bindings } = likeAnyCase(USER_TEXT, text, (form) => `%${form}%`);
  void query.whereRaw(sql, bindings);
}

/**
 * The local account with this user name (`whereUsername`). Before 0.3.0 there could be several, which differ in letters
 * beyond ASCII: then it is the one that is written so, or else the oldest.
 */
export const findLocalUser = (db: Knex, username: string) =>
  User.query(db)
    .where({ provider_id: LOCAL_PROVIDER })
    .modify(whereUsername, username)
    .orderByRaw('username = ? DESC, lower(username) = lower(?) DESC, id', [username, username])
    .first();

/**
 * True if another local account, or another service account of the tenant, has this name (`whereUsername`). Requires
 * `lockAccess`, so that no other is created until the commit.
 */
export async function isNameTaken(
  trx: Knex,
  {
    id,
    providerId,
    tenantId,
    username,
  }: Pick<User, 'providerId' | 'tenantId' | 'username'> & { id?: string },
): Promise<boolean> {
  const query = User.query(trx).where({ provider_id: providerId }).modify(whereUsername, username);
  if (providerId !== LOCAL_PROVIDER) void query.where({ tenant_id: tenantId });
  if (id !== undefined) void query.whereNot({ id });
  return (await query.first().select('id')) !== undefined;
}

type NewUser = Partial<Pick<User, 'ownerId' | 'passwordExpiresAt'>> &
  Pick<
    User,
    | 'id'
    | 'providerId'
    | 'externalId'
    | 'externalGroups'
    | 'username'
    | 'displayName'
    | 'email'
    | 'tenantId'
    | 'passwordHash'
    | 'mustChangePassword'
  >;

/** Inserts an enabled user. Errors: unique violations of the user name or the external id. */
export const insertUser = (trx: Knex, user: NewUser, now: Date) =>
  User.query(trx).insertAndFetch({
    ...user,
    enabled: true,
    lastLoginAt: null,
    createdAt: now,
    updatedAt: now,
    version: 1,
  });

/** What setting a one-time password changes of an account. */
export const withOneTimePassword = (passwordHash: string, now: Date) => ({
  passwordHash,
  mustChangePassword: true,
  passwordExpiresAt: oneTimePasswordEnd(now),
});

/** Inserts an enabled local account. Errors: as for `insertUser`. */
export const insertLocalUser = (
  trx: Knex,
  {
    passwordHash,
    mustChangePassword,
    ...account
  }: Omit<NewUser, 'providerId' | 'externalId' | 'externalGroups' | 'passwordHash'> & {
    passwordHash: string;
  },
  now: Date,
) =>
  insertUser(
    trx,
    {
      ...account,
      ...(mustChangePassword
        ? withOneTimePassword(passwordHash, now)
        : { passwordHash, mustChangePassword }),
      providerId: LOCAL_PROVIDER,
      externalId: null,
      externalGroups: [],
    },
    now,
  );
