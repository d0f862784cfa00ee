import { findGivings, keepingAdministrator, lockAccess } from '../../../db/access/access.ts';
import type { Commit } from '../../../db/commit.ts';
import { isUniqueViolation } from '../../../db/core/constraints.ts';
import { keysetPage, type Page, type PageRequest } from '../../../db/core/keyset.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { GrantRecord } from '../../../db/models/GrantRecord.ts';
import { Provider } from '../../../db/models/Provider.ts';
import { nextVersion, User } from '../../../db/models/User.ts';
import { findProviderPrincipals } from '../../../db/auth/providers.ts';
import { endSessions } from '../../../db/auth/sessions.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField, notFound } from '../../../domain/shared/errors.ts';
import { MASK } from '../../../domain/mask.ts';
import type { ProviderKind } from '../../../domain/auth/providers.ts';
import { PLATFORM } from '../../../domain/access/scope.ts';
import type { Ids } from '../../../platform/ids.ts';
import type { Vault } from '../../../platform/vault.ts';
import type { DispatchTask } from '../../../temporal/contracts.ts';
import type { Access } from '../../access.ts';
import { createProviderConfig } from './config.ts';
import { KINDS } from './kinds/index.ts';

export type Providers = ReturnType<typeof createProviders>;

export type ProviderRequest = {
  kind: ProviderKind;
  name: string;
  enabled?: boolean;
  config: Record<string, unknown>;
};
export type ProviderChange = { name?: string; enabled?: boolean; config?: Record<string, unknown> };

/** A provider as it is shown: secrets masked. */
export type ProviderView = Pick<
  Provider,
  'id' | 'kind' | 'name' | 'enabled' | 'config' | 'createdAt' | 'updatedAt' | 'version'
>;

const PLATFORM_PLACE = { tenantId: PLATFORM };

type Deps = { db: Knex; commit: Commit<DispatchTask>; access: Access; ids: Ids; vault: Vault };

/** Identity providers: records of the platform, their secrets sealed. */
export function createProviders({ db, commit, access, ids, vault }: Deps) {
  const { openConfig, checkConfig, split, merge } = createProviderConfig(vault);

  async function find(caller: Caller, id: string): Promise<Provider> {
    await access.require(caller, 'auth:read', PLATFORM_PLACE);
    const provider = await Provider.query(db).findById(id);
    if (!provider) throw notFound('provider', id);
    return provider;
  }

  /**
   * Who sets a provider could sign in as anybody of it, so they must hold whatever its people hold, at the moment of
   * the change: `lockAccess` comes first, and `now` is the current caller.
   */
  async function requireAsItsPeople(now: Caller, trx: Knex, id: string): Promise<void> {
    access.mustHold(now, await findGivings(trx, await findProviderPrincipals(trx, id)));
  }

  const nameTaken =
    (name: string) =>
    (error: unknown): never => {
      throw isUniqueViolation(error)
        ? new AppError('conflict', `There is already a provider called ${name}.`)
        : error;
    };

  return {
    openConfig,

    /** Providers that people can sign in with: what a login page needs, and nothing more. */
    enabled: async (): Promise<Pick<Provider, 'id' | 'kind' | 'name'>[]> =>
      await Provider.query(db)
        .where({ enabled: true })
        .select('id', 'kind', 'name')
        .orderBy('id')
        .limit(200),

    /**
     * The enabled provider of a kind; without an id the only one of it. Error: `invalid_request` at `/providerId`.
     */
    async choose(kind: ProviderKind, id: string | undefined): Promise<Provider> {
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

    /** With its secrets still sealed, for who may change it. Errors: `permission_denied`, `not_found`. */
    async readToTest(caller: Caller, id: string): Promise<Provider> {
      await access.require(caller, 'auth:write', PLATFORM_PLACE);
      return find(caller, id);
    },

    /** All providers, newest first. Error: `permission_denied`. */
    async list(caller: Caller, page: PageRequest): Promise<Page<ProviderView>> {
      await access.require(caller, 'auth:read', PLATFORM_PLACE);
      const { items, nextKey } = await keysetPage(Provider.query(db), page);
      return { items: items.map(view), nextKey };
    },

    /** Errors: `permission_denied`, `invalid_request` (config), `conflict` (name), `master_key_missing`. */
    async create(
      caller: Caller,
      { kind, name, enabled = true, config }: ProviderRequest,
    ): Promise<ProviderView> {
      await access.require(caller, 'auth:write', PLATFORM_PLACE);
      if (kind === 'local')
        throw new AppError(
          'built_in',
          'There is one provider of local accounts, and it is built in.',
        );
      const masked = KINDS[kind].secrets.find((field) => config[field] === MASK);
      if (masked !== undefined)
        throw invalidField('body', `/config/${masked}`, 'masked', 'is the mask, not a secret');
      const checked = checkConfig(kind, config);
      const id = ids.next('idp');
      return commit({ ...caller, tenantId: PLATFORM }, async (work) => {
        const trx = await work.trx();
        await lockAccess(trx);
        const taken = kind === 'oidc' && (await sharedCallbackTaken(trx));
        const full = { ...(kind === 'oidc' && { ownCallback: taken }), ...checked };
        if (taken && full.ownCallback !== true) throw callbackTaken();
        const provider = await Provider.query(trx)
          .insertAndFetch({
            id,
            kind,
            name,
            enabled,
            ...split(id, kind, full),
            createdAt: work.now,
            updatedAt: work.now,
            version: 1,
          })
          .catch(nameTaken(name));
        work.audit('provider.create', subject(provider), { after: trailView(provider) });
        work.emit('auth.provider.created', subject(provider), eventView(provider));
        return view(provider);
      });
    },

    /**
     * Changes what is given. Disabling ends the sessions of its people. Errors: `permission_denied`, `not_found`,
     * `invalid_request`, `conflict`, `last_administrator`, `version_stale`, `master_key_missing`.
     */
    async update(
      caller: Caller,
      id: string,
      change: ProviderChange,
      expectedVersion?: number,
    ): Promise<ProviderView> {
      await access.require(caller, 'auth:write', PLATFORM_PLACE);
      return access.denying(caller, () =>
        commit({ ...caller, tenantId: PLATFORM }, async (work) => {
          const trx = await work.trx();
          const { before, after } = await keepingAdministrator(trx, async () => {
            const found = await Provider.query(trx).findById(id).forUpdate();
            if (!found) throw notFound('provider', id);
            checkVersion(found, expectedVersion);
            const now = await access.current(caller, trx);
            access.mustHave(now, 'auth:write', PLATFORM_PLACE);
            // To disable it, or to call it otherwise, hands no power to anybody.
            if (change.config || change.enabled === true) await requireAsItsPeople(now, trx, id);
            if (change.config?.ownCallback === false && (await sharedCallbackTaken(trx, id)))
              throw callbackTaken();
            const changed = await Provider.query(trx)
              .patchAndFetchById(id, {
                ...(change.name !== undefined && { name: change.name }),
                ...(change.enabled !== undefined && { enabled: change.enabled }),
                ...(change.config && merge(found, change.config)),
                updatedAt: work.now,
                version: found.version + 1,
              })
              .catch(nameTaken(change.name ?? ''));
            return { before: found, after: changed };
          });
          if (!after.enabled)
            await endSessions(trx, { providerId: id, reason: 'provider', now: work.now });
          const secretsChanged = KINDS[after.kind].secrets.filter(
            (field) => ![undefined, MASK].includes(change.config?.[field] as string),
          );
          work.audit('provider.update', subject(after), {
            before: trailView(before),
            after: { ...trailView(after), secretsChanged },
          });
          work.emit('auth.provider.updated', subject(after), eventView(after));
          return view(after);
        }),
      );
    },

    /**
     * Takes a provider away with its mappings; its people are disabled, and their sessions end. Errors:
     * `permission_denied`, `not_found`, `built_in`, `last_administrator`, `version_stale`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      await access.require(caller, 'auth:write', PLATFORM_PLACE);
      const known = await find(caller, id);
      if (known.kind === 'local')
        throw new AppError(
          'built_in',
          'The provider of local accounts can be disabled, not deleted.',
        );
      await access.denying(caller, () =>
        commit({ ...caller, tenantId: PLATFORM }, async (work) => {
          const trx = await work.trx();
          const removed = await keepingAdministrator(trx, async () => {
            const before = await Provider.query(trx).findById(id).forUpdate();
            if (!before) throw notFound('provider', id);
            checkVersion(before, expectedVersion);
            const now = await access.current(caller, trx);
            access.mustHave(now, 'auth:write', PLATFORM_PLACE);
            await requireAsItsPeople(now, trx, id);
            await endSessions(trx, { providerId: id, reason: 'provider', now: work.now });
            const mappings = await GrantRecord.query(trx).where({ provider_id: id }).delete();
            const usersDisabled = await User.query(trx)
              .where({ provider_id: id, enabled: true })
              .patch({ enabled: false, updatedAt: work.now, version: nextVersion() });
            await Provider.query(trx).deleteById(id);
            return { mappings, usersDisabled };
          });
          work.audit('provider.delete', subject(known), {
            before: trailView(known),
            after: removed,
          });
          work.emit('auth.provider.deleted', subject(known), eventView(known));
        }),
      );
    },

    /** Seals every secret that an older key has sealed under the first one. Returns how many. */
    async resealAll(caller: Caller): Promise<number> {
      const stale = (provider: Provider) =>
        Object.values(provider.secrets).filter((sealed) => !vault.isCurrent(sealed)).length;
      const due = (await Provider.query(db)).filter((provider) => stale(provider) > 0);
      for (const { id } of due) {
        await commit({ ...caller, tenantId: PLATFORM }, async (work) => {
          const trx = await work.trx();
          const provider = await Provider.query(trx).findById(id).forUpdate().throwIfNotFound();
          await Provider.query(trx)
            .findById(id)
            .patch(split(id, provider.kind, openConfig(provider)));
          work.audit('provider.reseal', subject(provider));
        });
      }
      return due.reduce((sum, provider) => sum + stale(provider), 0);
    },
  };
}

/** Two providers that share a callback could be played off against each other. */
const sharedCallbackTaken = async (db: Knex, exceptId = ''): Promise<boolean> =>
  (await Provider.query(db)
    .where({ kind: 'oidc' })
    .whereNot({ id: exceptId })
    .whereRaw(`config ->> 'ownCallback' IS DISTINCT FROM 'true'`)
    .select('id')
    .first()) !== undefined;

const callbackTaken = () =>
  invalidField(
    'body',
    '/config/ownCallback',
    'taken',
    'must be true: another provider has the shared callback',
  );

const subject = ({ id }: { id: string }) => ({ type: 'provider', id });

const masked = ({ config, secrets }: Provider): Record<string, unknown> => ({
  ...config,
  ...Object.fromEntries(Object.keys(secrets).map((field) => [field, MASK])),
});

const view = (provider: Provider): ProviderView => {
  const { id, kind, name, enabled, createdAt, updatedAt, version } = provider;
  return { id, kind, name, enabled, config: masked(provider), createdAt, updatedAt, version };
};

const trailView = (provider: Provider) => ({
  kind: provider.kind,
  name: provider.name,
  enabled: provider.enabled,
  config: masked(provider),
});

const eventView = ({ id, kind, name, enabled }: Provider) => ({
  providerId: id,
  kind,
  name,
  enabled,
});
