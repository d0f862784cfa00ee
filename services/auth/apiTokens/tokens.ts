import { randomBytes } from 'node:crypto';
import { addControllers } from '../../../db/auth/accountControllers.ts';
import { ignoreNoChange, NoChange, type Commit, type Work } from '../../../db/core/commit.ts';
import { whereDefined } from '../../../db/core/keyset.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { readList } from '../../../db/core/lists.ts';
import { whereStatus, whereVisible } from '../../../db/auth/tokens.ts';
import { Pool } from '../../../db/models/Pool.ts';
import { Token } from '../../../db/models/Token.ts';
import { User } from '../../../db/models/User.ts';
import { tokenText, type TokenKind } from '../../../domain/auth/tokenText.ts';
import {
  DEFAULT_TOKEN_DAYS,
  MAX_TOKENS,
  statusOf,
  WARNING_DAYS,
  type TokenDetails,
  type TokenStatus,
} from '../../../domain/auth/tokens.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import {
  AppError,
  checkVersion,
  invalidField,
  invalidFields,
  notFound,
} from '../../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../../domain/shared/lists.ts';
import type { Ids } from '../../../platform/ids.ts';
import type { Access } from '../../access/access.ts';
import { createCommitWithCurrentRights } from '../../access/commitAccessChange.ts';
import type { CancelRevoked } from '../../jobs/cancelRevoked.ts';
import { createAccountChecks } from '../accountChecks.ts';
import { requireSessionId } from '../sessions.ts';
import { resolveSessionTenant } from '../sessionTenant.ts';
import { hashToken } from '../hashToken.ts';
import { checkExpiry, checkLimits, wideningOf, type TokenLimits } from './limits.ts';
import { tokenRecord } from './tokenAudit.ts';

export type ApiTokens = ReturnType<typeof createApiTokens>;

export type TokenRequest = TokenLimits & {
  name: string;
  /** The tenant of requests that name none. */
  tenantId?: string;
  /** The token is that of runners of these pools. */
  pools?: string[];
};
export type TokenChange = TokenLimits & { name?: string };
export type TokenFilter = { ownerId?: string; status?: readonly TokenStatus[] };

/** A token with its secret, which is returned only once. */
export type NewToken = { token: TokenDetails; secret: string };

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  config: { tokenMaxDays: number };
  cancelRevoked: Pick<CancelRevoked, 'afterCommit'>;
};

const daysAfter = (time: Date, days: number): Date => new Date(time.getTime() + days * DAY_MS);

function newSecret(kind: TokenKind): { secret: string; hash: Buffer } {
  const secret = tokenText(kind, randomBytes(32));
  return { secret, hash: hashToken(secret) };
}

/** The tokens of a person are that person's while signed in. */
const isOwn = (caller: Caller, { userId }: Pick<TokenDetails, 'userId'>): boolean =>
  caller.session !== undefined && caller.actorId === userId;

/** API tokens: of people, who make them for themselves, and of service accounts. */
export function createApiTokens({ db, commit, access, ids, config, cancelRevoked }: Deps) {
  const { tokenMaxDays } = config;
  const { assertMayIssue } = createAccountChecks({ db, access });
  const commitWithCurrentRights = createCommitWithCurrentRights({ commit, access });

  /** The tokens that the caller may see: their own, and those of accounts that they may read. */
  function visible(caller: Caller) {
    const scope = access.scope(caller, 'user:read', 'user:write');
    const query = Token.query(db);
    whereVisible(query, scope, caller.session && caller.actorId);
    return query;
  }

  async function find(caller: Caller, id: string): Promise<Token> {
    const token = await visible(caller).findById(id);
    if (!token) throw notFound('token', id);
    return token;
  }

  /** A token that the caller may change. Errors: `not_found`, `permission_denied`. */
  async function findToChange(caller: Caller, id: string): Promise<Token> {
    const token = await find(caller, id);
    if (!isOwn(caller, token)) await access.require(caller, 'user:write', token);
    return token;
  }

  /** Inserts a token of `owner` within a commit. Errors: `limit_reached`, `invalid_request`. */
  async function insert(
    work: Work,
    caller: Caller,
    { kind, owner, requestTenantId }: { kind: TokenKind; owner: User; requestTenantId: string },
    { name, tenantId, pools, ...request }: TokenRequest,
  ): Promise<NewToken> {
    const trx = await work.trx();
    const expiresAt =
      request.expiresAt ?? daysAfter(work.now, Math.min(DEFAULT_TOKEN_DAYS, tokenMaxDays));
    checkExpiry(expiresAt, work.now, tokenMaxDays);
    const limits = await checkLimits({ db: trx, access }, caller, request);
    // Serializes the tokens of one owner.
    await User.query(trx).findById(owner.id).forUpdate().select('id');
    const count = await Token.query(trx)
      .where({ user_id: owner.id })
      .whereNull('revoked_at')
      .resultSize();
    if (count >= MAX_TOKENS)
      throw new AppError(
        'limit_reached',
        `There are ${MAX_TOKENS} tokens. Revoke those that are not needed, also expired ones.`,
      );
    const { secret, hash } = newSecret(kind);
    const token = await Token.query(trx).insertAndFetch({
      id: ids.next('tok'),
      kind,
      userId: owner.id,
      tenantId: owner.tenantId,
      name,
      hash,
      permissions: limits.permissions ?? null,
      resourceScopes: limits.resourceScopes ?? null,
      jobTypes: limits.jobTypes ?? null,
      pools: kind === 'runner' ? [...new Set(pools)] : null,
      readOnly: limits.readOnly ?? false,
      allowedNetworks: limits.allowedNetworks ?? null,
      requestsPerMinute: limits.requestsPerMinute ?? null,
      requestTenantId,
      expiresAt,
      // It is too late to warn ahead.
      warnedAt: expiresAt <= daysAfter(work.now, WARNING_DAYS) ? work.now : null,
      createdBy: caller.actorId,
      createdAt: work.now,
      updatedAt: work.now,
      version: 1,
    });
    tokenRecord.created(work, token);
    work.result(token.id);
    return { token, secret };
  }

  /** Error: `invalid_request` for an unknown pool. */
  async function checkPools(trx: Knex, pools: readonly string[]): Promise<void> {
    const known = await Pool.query(trx)
      .whereIn('name', [...pools])
      .select('name');
    const missing = pools.findIndex((pool) => !known.some(({ name }) => name === pool));
    if (missing >= 0) {
      const message = `there is no pool named ${pools[missing] ?? ''}`;
      throw invalidField('body', `/pools/${missing}`, 'not_found', message);
    }
  }

  /** The only tenant of the resource scopes, or as for a session. Error: `invalid_request`. */
  async function requestTenantOf(
    owner: User,
    { tenantId, resourceScopes }: TokenRequest,
  ): Promise<string> {
    const tenants = new Set((resourceScopes ?? []).map((scope) => scope.tenantId));
    const [only] = tenants.size === 1 ? tenants : [];
    return tenantId === undefined && only !== undefined
      ? only
      : resolveSessionTenant(db, owner, tenantId);
  }

  /**
   * Changes a token while its row is locked, with the rights of the caller at that moment. Errors:
   * those of `findToChange`; `conflict` for a revoked token, `version_conflict`.
   */
  async function changeLocked<T>(
    caller: Caller,
    id: string,
    expectedVersion: number | undefined,
    change: (work: Work, token: Token, currentCaller: Caller, trx: Knex) => Promise<T>,
  ): Promise<T> {
    const known = await findToChange(caller, id);
    return commitWithCurrentRights(caller, known.tenantId, async (work, currentCaller, trx) => {
      const token = await Token.query(trx).findById(id).forUpdate().throwIfNotFound();
      if (!isOwn(caller, token)) access.assertPermission(currentCaller, 'user:write', token);
      if (token.revokedAt) throw new AppError('conflict', 'The token is revoked.');
      checkVersion(token, expectedVersion);
      return change(work, token, currentCaller, trx);
    });
  }

  async function revokeLocked(work: Work, token: Token, actorId: string): Promise<void> {
    await Token.query(await work.trx())
      .findById(token.id)
      .patch({
        revokedAt: work.now,
        revokedBy: actorId,
        updatedAt: work.now,
        version: token.version + 1,
      });
    tokenRecord.acted(work, 'revoke', token);
  }

  return {
    /** Error: `not_found`. */
    find: (caller: Caller, id: string): Promise<TokenDetails> => find(caller, id),

    findToChange: (caller: Caller, id: string): Promise<TokenDetails> => findToChange(caller, id),

    /** Tokens that the caller may see. */
    list: (
      caller: Caller,
      { ownerId, status }: TokenFilter,
      request: ListRequest,
    ): Promise<ListAnswer<TokenDetails>> =>
      readList(
        {
          db,
          visible() {
            const query = visible(caller);
            whereDefined(query, { user_id: ownerId });
            if (status) whereStatus(query, status);
            return query;
          },
        },
        request,
      ),

    /**
     * Creates a token of the caller, who is signed in. Errors: `invalid_request`, `limit_reached`,
     * `session_invalid`, `password_change_required`, `permission_denied`.
     */
    async createOwn(caller: Caller, request: TokenRequest): Promise<NewToken> {
      requireSessionId(caller);
      requireWholeRights(caller);
      const owner = await User.query(db).findById(caller.actorId).throwIfNotFound();
      const requestTenantId = await requestTenantOf(owner, request);
      return commit({ ...caller, tenantId: owner.tenantId }, (work) =>
        insert(work, caller, { kind: 'personal', owner, requestTenantId }, request),
      );
    },

    /**
     * Creates a token of a service account. The caller must hold everything that the account may do;
     * for one of runners, also `jobtype:write` at the platform. Errors: `permission_denied`,
     * `invalid_request`, `limit_reached`.
     */
    async createForService(
      caller: Caller,
      accountId: string,
      request: TokenRequest,
    ): Promise<NewToken> {
      const owner = await User.query(db).findById(accountId).throwIfNotFound();
      const requestTenantId = await requestTenantOf(owner, request);
      return commitWithCurrentRights(caller, owner.tenantId, async (work, currentCaller, trx) => {
        const current = await User.query(trx).findById(owner.id).throwIfNotFound();
        access.assertPermission(currentCaller, 'user:write', current);
        const kind = request.pools ? 'runner' : 'service';
        await assertMayIssue(currentCaller, trx, { kind, owner: current });
        if (request.pools) await checkPools(trx, request.pools);
        await addControllers(trx, owner.id, { caller: currentCaller }, work.now);
        return insert(work, currentCaller, { kind, owner: current, requestTenantId }, request);
      });
    },

    /**
     * Renames a token or narrows what it may do. Errors: `not_found`, `permission_denied`,
     * `invalid_request` for what would widen it, `conflict`, `version_conflict`.
     */
    update: (
      caller: Caller,
      id: string,
      { name, ...request }: TokenChange,
      expectedVersion?: number,
    ): Promise<TokenDetails> =>
      changeLocked(caller, id, expectedVersion, async (work, before, currentCaller, trx) => {
        const limits = await checkLimits({ db: trx, access }, currentCaller, request);
        if (limits.expiresAt) checkExpiry(limits.expiresAt, work.now, tokenMaxDays);
        const widened = wideningOf(before, limits);
        if (widened.length > 0) throw invalidFields(widened);
        const after = await Token.query(trx).patchAndFetchById(id, {
          ...limits,
          ...(name !== undefined && { name }),
          updatedAt: work.now,
          version: before.version + 1,
        });
        tokenRecord.updated(work, before, after);
        return after;
      }),

    /**
     * Replaces the secret of an active token. The present one stays valid for `overlapSeconds`; an
     * earlier one ends. Only its owner rotates a personal token; that of a service account, callers who
     * could create it. Errors: those of `update`.
     */
    rotate: (
      caller: Caller,
      id: string,
      overlapSeconds: number,
      expectedVersion?: number,
    ): Promise<NewToken> =>
      changeLocked(caller, id, expectedVersion, async (work, before, currentCaller, trx) => {
        const status = statusOf(before, work.now);
        if (status !== 'active') throw new AppError('conflict', `The token is ${status}.`);
        if (before.kind === 'personal' && !isOwn(caller, before))
          throw new AppError('permission_denied', 'Only its owner rotates a personal token.');
        if (before.kind === 'personal') requireWholeRights(caller);
        if (before.kind !== 'personal') {
          const account = await User.query(trx).findById(before.userId).throwIfNotFound();
          await assertMayIssue(currentCaller, trx, { kind: before.kind, owner: account });
          await addControllers(trx, account.id, { caller: currentCaller }, work.now);
        }
        const { secret, hash } = newSecret(before.kind);
        const validUntil = work.now.getTime() + overlapSeconds * 1_000;
        const token = await Token.query(trx).patchAndFetchById(id, {
          hash,
          previousHash: overlapSeconds > 0 ? before.hash : null,
          previousValidUntil:
            overlapSeconds > 0 ? new Date(Math.min(validUntil, before.expiresAt.getTime())) : null,
          rotatedAt: work.now,
          updatedAt: work.now,
          version: before.version + 1,
        });
        tokenRecord.acted(work, 'rotate', token, { extra: { overlapSeconds } });
        work.result(id);
        return { token, secret };
      }),

    /** Ends a token and what it has asked for. Errors: `not_found`, `permission_denied`. */
    async revoke(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      if ((await findToChange(caller, id)).revokedAt) return;
      await changeLocked(caller, id, expectedVersion, async (work, token) =>
        revokeLocked(work, token, caller.actorId),
      );
      await cancelRevoked.afterCommit();
    },

    /** The token of the request. Error: `token_invalid` for a request without one. */
    async current(caller: Caller): Promise<TokenDetails> {
      return Token.query(db).findById(requireTokenId(caller)).throwIfNotFound();
    },

    /** Revokes the token of the request. Error: `token_invalid` for a request without one. */
    async revokeCurrent(caller: Caller): Promise<void> {
      const id = requireTokenId(caller);
      const { tenantId } = await Token.query(db).findById(id).throwIfNotFound();
      await commit({ ...caller, tenantId }, async (work) => {
        const token = await Token.query(await work.trx())
          .findById(id)
          .forUpdate()
          .throwIfNotFound();
        if (token.revokedAt) throw new NoChange();
        await revokeLocked(work, token, caller.actorId);
      }).catch(ignoreNoChange(undefined));
      await cancelRevoked.afterCommit();
    },
  };
}

/** A token has all rights of its owner: a request that has fewer cannot make one. */
function requireWholeRights({ session, roleIds }: Caller): void {
  if (session?.mustChangePassword)
    throw new AppError('password_change_required', 'A one-time password must be changed first.');
  if (roleIds)
    throw new AppError(
      'permission_denied',
      'A request that X-Service-Role-Ids narrows cannot make a token.',
    );
}

function requireTokenId({ token }: Caller): string {
  if (!token) throw new AppError('token_invalid', 'The request has no API token.');
  return token.id;
}
