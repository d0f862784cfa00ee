import { NoChange, type Commit } from '../../db/core/commit.ts';
import { conflictIfTaken } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import { Secret } from '../../db/models/Secret.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { secretContext, type SecretData } from '../../domain/secrets/secrets.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import { assertNotMask, replacedSecret } from '../../domain/shared/sentSecret.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Access } from '../access/access.ts';
import { reencryptRecords, type Reencryption } from '../shared/reencrypt.ts';
import { secretRecord } from './secretAudit.ts';

export type Secrets = ReturnType<typeof createSecrets>;

export type SecretFields = {
  name: string;
  value: string;
  description?: string;
  pools?: readonly string[];
};

/** The name never changes: job types ask for it, and a restore must not attach a value to another one. */
export type SecretChange = Partial<Omit<SecretFields, 'name'>>;

type Deps = { db: Knex; commit: Commit; access: Access; ids: Ids; vault: Vault };

/** Named secrets. Their values are set, and never shown. */
export function createSecrets({ db, commit, access, ids, vault }: Deps) {
  const repository = scopedRepository<Secret>(Secret, {
    db,
    commit,
    access,
    kind: 'secret',
    readPermission: 'secret:read',
  });

  return {
    /**
     * Creates a secret in the caller's tenant. Errors: `permission_denied`, `conflict` (name),
     * `invalid_request` (the value is the mask), `quota_exceeded`, `master_key_missing`.
     */
    async create(caller: Caller, fields: SecretFields): Promise<SecretData> {
      await access.require(caller, 'secret:write', caller);
      assertNotMask('/value', fields.value);
      const id = ids.next('sec');
      const created = commit(caller, async (work) => {
        const secret = await Secret.query(await work.trx()).insertAndFetch({
          id,
          tenantId: caller.tenantId,
          name: fields.name,
          description: fields.description ?? '',
          pools: distinct(fields.pools ?? []),
          sealed: vault.seal(fields.value, secretContext(id)),
          valueSetAt: work.now,
          createdBy: caller.actorId,
          createdAt: work.now,
          updatedAt: work.now,
          version: 1,
        });
        secretRecord.created(work, secret);
        work.result(id);
        return secret;
      });
      return created.catch(
        conflictIfTaken(`The tenant has a secret called ${fields.name} already.`),
      );
    },

    /** `actedWith`: see `ScopedRepository`. Error: `not_found`. */
    read: (caller: Caller, id: string, actedWith?: Permission): Promise<SecretData> =>
      repository.find(caller, id, actedWith),

    /** The secrets that the caller may read. */
    list: (caller: Caller, request: ListRequest): Promise<ListAnswer<SecretData>> =>
      repository.list(caller, request),

    /**
     * Changes the fields that are present; a new value replaces the present one immediately, and the mask keeps it. Errors:
     * `not_found`, `permission_denied`, `version_conflict`, `master_key_missing`.
     */
    async update(
      caller: Caller,
      id: string,
      { value: sent, description, pools }: SecretChange,
      expectedVersion?: number,
    ): Promise<SecretData> {
      const value = replacedSecret(sent);
      const known = await repository.findToAct(caller, id, 'secret:write');
      return repository.commitLocked(caller, known, expectedVersion, async (work, before, trx) => {
        const after = await Secret.query(trx).patchAndFetchById(id, {
          ...(description !== undefined && { description }),
          ...(pools && { pools: distinct(pools) }),
          ...(value !== undefined && {
            sealed: vault.seal(value, secretContext(id)),
            valueSetAt: work.now,
          }),
          updatedAt: work.now,
          version: before.version + 1,
        });
        secretRecord.updated(work, before, after, { extra: { valueChanged: value !== undefined } });
        return after;
      });
    },

    /** Deletes a secret and its value. Errors: `not_found`, `permission_denied`, `version_conflict`. */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await repository.findToAct(caller, id, 'secret:write');
      await repository.commitLocked(caller, known, expectedVersion, async (work, before, trx) => {
        await Secret.query(trx).deleteById(id);
        secretRecord.deleted(work, before);
      });
    },

    /** Encrypts every value with the current master key that was encrypted with another one. */
    async reencryptSecrets(caller: Caller): Promise<Reencryption> {
      const all = await Secret.query(db).select('id', 'tenant_id', 'sealed');
      const outdated = all.filter(({ sealed }) => !vault.isCurrent(sealed));
      return reencryptRecords(vault, outdated, ({ id, tenantId }, reencrypter) =>
        commit({ ...caller, tenantId }, async (work) => {
          const trx = await work.trx();
          const secret = await Secret.query(trx).findById(id).forUpdate();
          if (!secret) throw new NoChange();
          const sealed = reencrypter.reencrypt(secret.sealed, secretContext(id));
          if (reencrypter.changed() === 0) throw new NoChange();
          await Secret.query(trx).findById(id).patch({ sealed });
          secretRecord.acted(work, 'reencrypt_secrets', secret);
        }),
      );
    },
  };
}

const distinct = (names: readonly string[]): string[] => [...new Set(names)].sort();
