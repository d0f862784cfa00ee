import { findRoleGrants, guardLastAdministrator } from '../../../db/access/access.ts';
import { NoChange, type Commit, type Work } from '../../../db/core/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { readList } from '../../../db/core/lists.ts';
import { GrantRecord } from '../../../db/models/GrantRecord.ts';
import { isProviderNameTaken, Provider } from '../../../db/models/Provider.ts';
import { nextVersion, User } from '../../../db/models/User.ts';
import { findProviderPrincipals, isSharedCallbackTaken } from '../../../db/auth/providers.ts';
import { endSessions } from '../../../db/auth/sessions.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField, notFound } from '../../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../../domain/shared/lists.ts';
import { MASK } from '../../../domain/shared/mask.ts';
import { assertNotMask } from '../../../domain/shared/sentSecret.ts';
import type { ProviderKind } from '../../../domain/auth/providers.ts';
import { PLATFORM, PLATFORM_SCOPE } from '../../../domain/access/scope.ts';
import type { Ids } from '../../../platform/ids.ts';
import type { Vault } from '../../../platform/vault.ts';
import type { Access } from '../../access/access.ts';
import { createCommitAccessChange } from '../../access/commitAccessChange.ts';
import { grantRecordOf } from '../../access/grantAudit.ts';
import type { CancelRevoked } from '../../jobs/cancelRevoked.ts';
import { reencryptRecords, type Reencryption } from '../../shared/reencrypt.ts';
import { userRecord } from '../userAudit.ts';
import { createProviderConfig, providerContext } from './config.ts';
import { KIND_DEFINITIONS } from './kinds/index.ts';
import { maskSecrets, providerRecord } from './providerAudit.ts';

export type Providers = ReturnType<typeof createProviders>;

export type ProviderRequest = {
  kind: ProviderKind;
  name: string;
  enabled?: boolean;
  config: Record<string, unknown>;
};
export type ProviderChange = {
  name?: string;
  enabled?: boolean;
  config?: Record<string, unknown>;
  /** The accounts belong to those who have the same ids after a change of the issuer. */
  keepAccounts?: boolean;
};

/** A provider as the API returns it, with masked secrets. */
export type ProviderView = Pick<
  Provider,
  'id' | 'kind' | 'name' | 'enabled' | 'config' | 'createdAt' | 'updatedAt' | 'version'
>;

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  vault: Vault;
  cancelRevoked: Pick<CancelRevoked, 'afterCommit'>;
};

/** Identity providers. They belong to the platform. */
export function createProviders({ db, commit, access, ids, vault, cancelRevoked }: Deps) {
  const { openConfig, checkConfig, sealSecrets, merge } = createProviderConfig(vault);
  const commitChange = createCommitAccessChange({ commit, access });

  /** A provider for a caller with `permission`. Errors: `permission_denied`, `not_found`. */
  async function find(
    caller: Caller,
    id: string,
    permission: 'auth:read' | 'auth:write' = 'auth:read',
  ): Promise<Provider> {
    await access.require(caller, permission, PLATFORM_SCOPE);
    const provider = await Provider.query(db).findById(id);
    if (!provider) throw notFound('provider', id);
    return provider;
  }

  /**
   * Configuring a provider allows signing in as any of its users, so the caller must hold every
   * permission of these users at that moment. Requires `lockAccess`; `currentCaller` is from
   * `withCurrentRights`.
   */
  async function assertHoldsUsersRights(
    currentCaller: Caller,
    trx: Knex,
    id: string,
  ): Promise<void> {
    access.assertHolds(
      currentCaller,
      await findRoleGrants(trx, await findProviderPrincipals(trx, id)),
    );
  }

  /** Another issuer may have other people under the ids of the accounts. Error: `invalid_request`. */
  async function assertSameIdentities(trx: Knex, before: Provider, config: Provider['config']) {
    const { identity, identityOf } = KIND_DEFINITIONS[before.kind];
    const changed = (identityOf?.(before.config) ?? identity).find(
      (field) => before.config[field] !== config[field],
    );
    if (changed === undefined) return;
    const account = await User.query(trx).where({ provider_id: before.id }).select('id').first();
    if (account) throw identitiesChangeError(changed);
  }

  /** Error: `conflict`. The index knows fewer spellings of a name. */
  async function assertNameFree(trx: Knex, name: string, id?: string): Promise<void> {
    if (await isProviderNameTaken(trx, name, id))
      throw new AppError('conflict', `A provider named ${name} already exists.`);
  }

  return {
    openConfig,

    /** Enabled providers, for login pages of anonymous users. */
    listEnabled: async (): Promise<Pick<Provider, 'id' | 'kind' | 'name'>[]> =>
      await Provider.query(db)
        .where({ enabled: true })
        .select('id', 'kind', 'name')
        .orderBy('id')
        .limit(200),

    /**
     * The enabled provider with this id, or the only one of the kind if no id is passed. Error:
     * `invalid_request` at `/providerId`.
     */
    async findEnabled(kind: ProviderKind, id: string | undefined): Promise<Provider> {
      const query = Provider.query(db).where({ kind, enabled: true }).limit(2);
      const found = await (id === undefined ? query : query.where({ id }));
      const [provider] = found;
      if (!provider)
        throw invalidField(
          'body',
          '/providerId',
          'not_found',
          `there is no enabled ${kind} provider${id === undefined ? '' : ` with id ${id}`}`,
        );
      if (found.length > 1)
        throw invalidField(
          'body',
          '/providerId',
          'required',
          `there is more than one ${kind} provider; GET /api/auth/providers/enabled lists them`,
        );
      return provider;
    },

    read: async (caller: Caller, id: string): Promise<ProviderView> => view(await find(caller, id)),

    /** A provider for callers who may change it. Errors: `permission_denied`, `not_found`. */
    readToChange: async (caller: Caller, id: string): Promise<ProviderView> =>
      view(await find(caller, id, 'auth:write')),

    /**
     * A provider with its encrypted secrets, for callers with `auth:write`. Errors:
     * `permission_denied`, `not_found`.
     */
    readForTest: (caller: Caller, id: string): Promise<Provider> => find(caller, id, 'auth:write'),

    /** All providers. Error: `permission_denied`. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<ProviderView>> {
      await access.require(caller, 'auth:read', PLATFORM_SCOPE);
      const answer = await readList({ db, visible: () => Provider.query(db) }, request);
      return { ...answer, items: answer.items.map(view) };
    },

    /**
     * Errors: `permission_denied`, `invalid_request` (config), `conflict` (name),
     * `master_key_missing`.
     */
    async create(
      caller: Caller,
      { kind, name, enabled = true, config }: ProviderRequest,
    ): Promise<ProviderView> {
      await access.require(caller, 'auth:write', PLATFORM_SCOPE);
      if (kind === 'local')
        throw new AppError(
          'built_in',
          'The provider of local accounts is built in; there cannot be another one.',
        );
      for (const field of KIND_DEFINITIONS[kind].secrets)
        assertNotMask(`/config/${field}`, config[field]);
      const checked = checkConfig(kind, config);
      const id = ids.next('idp');
      return commitChange(caller, 'auth:write', PLATFORM_SCOPE, async (work, _current, trx) => {
        const isTaken = kind === 'oidc' && (await isSharedCallbackTaken(trx));
        const fullConfig = { ...(kind === 'oidc' && { ownCallback: isTaken }), ...checked };
        if (isTaken && fullConfig.ownCallback !== true) throw callbackTakenError();
        await assertNameFree(trx, name);
        const provider = await Provider.query(trx).insertAndFetch({
          id,
          kind,
          name,
          enabled,
          ...sealSecrets(id, kind, fullConfig),
          createdAt: work.now,
          updatedAt: work.now,
          version: 1,
        });
        providerRecord.created(work, provider);
        work.result(provider.id);
        return view(provider);
      });
    },

    /**
     * Changes the passed fields. Disabling ends the sessions and running jobs of the provider's users. Errors:
     * `permission_denied`, `not_found`, `invalid_request`, `conflict`, `last_administrator`,
     * `version_conflict`, `master_key_missing`.
     */
    async update(
      caller: Caller,
      id: string,
      { config: requested, keepAccounts = false, ...change }: ProviderChange,
      expectedVersion?: number,
    ): Promise<ProviderView> {
      // An empty object changes nothing, so it needs neither the rights nor the keys for a change.
      const config = Object.keys(requested ?? {}).length > 0 ? requested : undefined;
      await access.require(caller, 'auth:write', PLATFORM_SCOPE);
      const changed = await commitChange(
        caller,
        'auth:write',
        PLATFORM_SCOPE,
        async (work, currentCaller, trx) => {
          const { before, after } = await guardLastAdministrator(trx, async () => {
            const found = await lockProvider(trx, id, expectedVersion);
            // Disabling or renaming a provider grants nothing.
            if (config || change.enabled === true)
              await assertHoldsUsersRights(currentCaller, trx, id);
            if (config?.ownCallback === false && (await isSharedCallbackTaken(trx, id)))
              throw callbackTakenError();
            const merged = config && merge(found, config);
            if (merged && !keepAccounts) await assertSameIdentities(trx, found, merged.config);
            // One that has the name of another from before keeps it.
            if (change.name !== undefined && change.name !== found.name)
              await assertNameFree(trx, change.name, id);
            const changed = await Provider.query(trx).patchAndFetchById(id, {
              ...(change.name !== undefined && { name: change.name }),
              ...(change.enabled !== undefined && { enabled: change.enabled }),
              ...merged,
              updatedAt: work.now,
              version: found.version + 1,
            });
            return { before: found, after: changed };
          });
          if (!after.enabled)
            await endSessions(trx, { providerId: id, reason: 'provider_disabled', now: work.now });
          const secretsChanged = KIND_DEFINITIONS[after.kind].secrets.filter(
            (field) => ![undefined, MASK].includes(config?.[field] as string),
          );
          providerRecord.updated(work, before, after, { extra: { secretsChanged } });
          return view(after);
        },
      );
      if (!changed.enabled) await cancelRevoked.afterCommit();
      return changed;
    },

    /**
     * Deletes a provider and its mappings, disables its users and ends their sessions and running jobs.
     * Errors: `permission_denied`, `not_found`, `built_in`, `last_administrator`, `version_conflict`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await find(caller, id, 'auth:write');
      if (known.kind === 'local')
        throw new AppError(
          'built_in',
          'The provider of local accounts cannot be deleted, only disabled.',
        );
      await commitChange(caller, 'auth:write', PLATFORM_SCOPE, async (work, currentCaller, trx) => {
        const removed = await guardLastAdministrator(trx, async () => {
          await lockProvider(trx, id, expectedVersion);
          await assertHoldsUsersRights(currentCaller, trx, id);
          await endSessions(trx, { providerId: id, reason: 'provider_disabled', now: work.now });
          const mappings = await deleteMappings(work, trx, id);
          const usersDisabled = await disableUsers(work, trx, id);
          await Provider.query(trx).deleteById(id);
          return { mappings, usersDisabled };
        });
        providerRecord.acted(work, 'delete', known, { before: known, extra: removed });
        providerRecord.emit(work, 'auth.provider.deleted', known);
      });
      await cancelRevoked.afterCommit();
    },

    /** Encrypts secrets again that were encrypted with another key than the current master key. */
    async reencryptSecrets(caller: Caller): Promise<Reencryption> {
      const outdated = (await Provider.query(db)).filter(({ secrets }) =>
        Object.values(secrets).some((sealed) => !vault.isCurrent(sealed)),
      );
      return reencryptRecords(vault, outdated, ({ id }, reencrypter) =>
        commit({ ...caller, tenantId: PLATFORM }, async (work) => {
          const trx = await work.trx();
          const provider = await Provider.query(trx).findById(id).forUpdate();
          const secrets = Object.entries(provider?.secrets ?? {}).map(([field, sealed]) => [
            field,
            reencrypter.reencrypt(sealed, providerContext(id, field)),
          ]);
          if (!provider || reencrypter.changed() === 0) throw new NoChange();
          await Provider.query(trx)
            .findById(id)
            .patch({ secrets: Object.fromEntries(secrets) as Record<string, string> });
          providerRecord.acted(work, 'reencrypt_secrets', provider);
        }),
      );
    },
  };
}

const identitiesChangeError = (field: string) =>
  invalidField(
    'body',
    `/config/${field}`,
    'has_accounts',
    'cannot change, because the ids of the accounts of this provider may belong to other people there; create another provider, or send keepAccounts if the ids are the same',
  );

const callbackTakenError = () =>
  invalidField(
    'body',
    '/config/ownCallback',
    'taken',
    'must be true, because another provider uses the shared callback',
  );

const view = (provider: Provider): ProviderView => {
  const { id, kind, name, enabled, createdAt, updatedAt, version } = provider;
  return { id, kind, name, enabled, config: maskSecrets(provider), createdAt, updatedAt, version };
};

/** Deletes the mappings of a provider, each with its entry and event in its tenant. Returns the number. */
async function deleteMappings(work: Work, trx: Knex, id: string): Promise<number> {
  const deleted = await GrantRecord.query(trx).where({ provider_id: id }).delete().returning('*');
  for (const grant of deleted)
    grantRecordOf(grant).deleted(work, grant, { tenantId: grant.tenantId });
  return deleted.length;
}

/** Disables the accounts of a provider, each with its entry and event in its tenant. Returns the number. */
async function disableUsers(work: Work, trx: Knex, id: string): Promise<number> {
  const disabled = await User.query(trx)
    .where({ provider_id: id, enabled: true })
    .patch({ enabled: false, updatedAt: work.now, version: nextVersion() })
    .returning('*');
  for (const user of disabled) {
    const before = user.$clone().$set({ enabled: true });
    userRecord.updated(work, before, user, { tenantId: user.tenantId });
  }
  return disabled.length;
}

/** Locks a provider. Errors: `not_found`, `version_conflict`. */
async function lockProvider(trx: Knex, id: string, expectedVersion?: number): Promise<Provider> {
  const provider = await Provider.query(trx).findById(id).forUpdate();
  if (!provider) throw notFound('provider', id);
  checkVersion(provider, expectedVersion);
  return provider;
}
