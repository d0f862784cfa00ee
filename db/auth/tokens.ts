import type { QueryBuilder } from 'objection';
import type { UserAuthState } from '../access/access.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { anyOf } from '../core/sql.ts';
import { Token } from '../models/Token.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { TokenScope } from '../../domain/access/tokenScope.ts';
import type { TokenStatus } from '../../domain/auth/tokens.ts';
import type { TokenKind } from '../../domain/auth/tokenText.ts';

/**
 * A token and what decides about its rights. `enabled`: its owner. Resource scopes that no longer exist,
 * or whose site or device has moved to another tenant, are left out.
 */
export type TokenState = TokenScope &
  UserAuthState & {
    id: string;
    kind: TokenKind;
    userId: string;
    /** The pools whose jobs a runner's token may take. */
    pools: string[] | null;
    /** The tenant of its owner. */
    tenantId: string;
    /** The tenant of requests that name none. */
    requestTenantId: string;
    allowedNetworks: string[] | null;
    requestsPerMinute: number | null;
    expiresAt: Date;
    /** Until when the secret that was used is valid, if it is the one before the last rotation. */
    previousValidUntil: Date | null;
    lastUsedAt: Date | null;
    disabledAt: Date | null;
    revokedAt: Date | null;
  };

const selectState = (previousValidUntil: string, condition: string): string => `
  SELECT t.id, t.kind, t.pools, t.user_id AS "userId", t.tenant_id AS "tenantId",
         t.request_tenant_id AS "requestTenantId", t.permissions,
         CASE WHEN t.resource_scopes IS NOT NULL THEN ARRAY(
           SELECT jsonb_build_object('tenantId', asked."tenantId",
                    'siteId', CASE WHEN d.id IS NULL THEN s.id ELSE own_site_of_device(d.id) END,
                    'deviceId', d.id)
           FROM jsonb_to_recordset(t.resource_scopes)
                AS asked ("tenantId" text, "siteId" text, "deviceId" text)
             LEFT JOIN devices AS d ON d.id = asked."deviceId"
             LEFT JOIN sites AS s ON s.id = asked."siteId" AND asked."deviceId" IS NULL
           WHERE CASE WHEN asked."deviceId" IS NOT NULL THEN d.tenant_id = asked."tenantId"
                      WHEN asked."siteId" IS NOT NULL THEN s.tenant_id = asked."tenantId"
                      ELSE true END) END AS "resourceScopes",
         t.job_types AS "jobTypes", t.read_only AS "readOnly",
         t.allowed_networks AS "allowedNetworks", t.requests_per_minute AS "requestsPerMinute",
         t.expires_at AS "expiresAt", ${previousValidUntil} AS "previousValidUntil",
         t.last_used_at AS "lastUsedAt", t.disabled_at AS "disabledAt", t.revoked_at AS "revokedAt",
         u.enabled AND COALESCE(p.enabled, u.provider_id = 'service') AS enabled,
         u.provider_id AS "providerId", u.external_groups AS "externalGroups",
         (SELECT version FROM access_state) AS version
  FROM tokens AS t JOIN users AS u ON u.id = t.user_id
    LEFT JOIN providers AS p ON p.id = u.provider_id
  WHERE ${condition}`;

const BY_HASH = selectState(
  'CASE WHEN t.previous_hash = ? THEN t.previous_valid_until END',
  't.hash = ? OR t.previous_hash = ?',
);
const BY_ID = selectState('NULL::timestamptz', 't.id = ?');

/** The token with this secret, which may be expired, disabled or revoked. */
export async function findTokenByHash(db: Knex, hash: Buffer): Promise<TokenState | undefined> {
  const { rows }: { rows: TokenState[] } = await prepared(db, BY_HASH, [hash, hash, hash]);
  return rows[0];
}

/** The token with this id, which may be expired, disabled or revoked. */
export async function findTokenState(db: Knex, id: string): Promise<TokenState | undefined> {
  const { rows }: { rows: TokenState[] } = await prepared(db, BY_ID, [id]);
  return rows[0];
}

/** The last request with a token. */
export type TokenUse = { id: string; at: Date; address: string | null };

/** Notes the last use of tokens, unless a later one is known. */
export const noteTokenUses = async (db: Knex, uses: readonly TokenUse[]): Promise<void> =>
  void (await prepared(
    db,
    `UPDATE tokens AS t SET last_used_at = used.at, last_used_address = used.address
     FROM json_to_recordset(?::json) AS used (id text, at timestamptz, address text)
     WHERE t.id = used.id AND (t.last_used_at IS NULL OR t.last_used_at < used.at)`,
    [JSON.stringify(uses)],
  ));

/** The statuses of tokens, as `statusOf` computes them, in SQL. */
const STATUS_SQL: Readonly<Record<TokenStatus, string>> = {
  revoked: 'revoked_at IS NOT NULL',
  expired: 'revoked_at IS NULL AND expires_at <= now()',
  disabled: 'revoked_at IS NULL AND expires_at > now() AND disabled_at IS NOT NULL',
  active: 'revoked_at IS NULL AND expires_at > now() AND disabled_at IS NULL',
};

/** Narrows a query to tokens with one of these statuses. */
export const whereStatus = (query: QueryBuilder<Token>, statuses: readonly TokenStatus[]): void =>
  void query.whereRaw(anyOf(statuses.map((each) => ({ sql: STATUS_SQL[each], bindings: [] }))).sql);

/** Whether the account has an active token of runners. */
export async function hasRunnerToken(db: Knex, userId: string): Promise<boolean> {
  const query = Token.query(db).where({ user_id: userId, kind: 'runner' }).select('id').limit(1);
  whereStatus(query, ['active']);
  return (await query).length > 0;
}

/** Tokens that expire within `days` and of which nobody was warned, in no order. */
export const findExpiring = async (db: Knex, days: number, limit: number): Promise<Token[]> =>
  Token.query(db)
    .whereNull('revoked_at')
    .whereNull('warned_at')
    .whereRaw(`expires_at BETWEEN now() AND now() + ? * interval '1 day'`, [days])
    .whereNull('disabled_at')
    .orderByRaw('random()')
    .limit(limit);

/** Active tokens that nobody has used or rotated for `days`, in no order. */
export const findUnused = async (db: Knex, days: number, limit: number): Promise<Token[]> =>
  Token.query(db)
    .whereNull('revoked_at')
    .whereNull('disabled_at')
    // The first is that of an index.
    .whereRaw(`coalesce(last_used_at, created_at) < now() - ? * interval '1 day'`, [days])
    .whereRaw(`coalesce(rotated_at, created_at) < now() - ? * interval '1 day'`, [days])
    .where('expires_at', '>', new Date())
    .orderByRaw('random()')
    .limit(limit);

/** Tokens inside `scope`, and those of the user `ownerId`. */
export function whereVisible(query: QueryBuilder<Token>, scope: Scope, ownerId?: string): void {
  const { sql, bindings } = scopeCondition(scope);
  if (ownerId === undefined) void query.whereRaw(sql, bindings);
  else void query.whereRaw(`(user_id = ? OR ${sql})`, [ownerId, ...bindings]);
}
