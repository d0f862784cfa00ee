import { NoChange, type Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import { shareHoldLock } from '../../db/retention/holds.ts';
import { Webhook } from '../../db/models/Webhook.ts';
import { findLastDeliveries, type LastDelivery } from '../../db/webhooks/lastDeliveries.ts';
import { whereSubscribedTo } from '../../db/webhooks/subscriptions.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { ALL_EVENT_TYPES } from '../../domain/events/events.ts';
import { writerKeyOf, type Caller } from '../../domain/shared/caller.ts';
import { maskText } from '../../domain/shared/credentials.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { MASK } from '../../domain/shared/mask.ts';
import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import { replacedSecret } from '../../domain/shared/sentSecret.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import {
  DEFAULT_DELIVERY_RETRY,
  ROTATION_OVERLAP_MS,
  type DeliveryRetryPolicy,
} from '../../domain/webhooks/webhooks.ts';
import type { WebhookData } from '../../domain/webhooks/records.ts';
import type { GuardedHttp } from '../../platform/guardedHttp.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Vault } from '../../platform/vault.ts';
import type { Access } from '../access/access.ts';
import { assertNotHeld } from '../retention/assertNotHeld.ts';
import { checkUrlField } from '../shared/checkUrlField.ts';
import { reencryptRecords, type Reencryption } from '../shared/reencrypt.ts';
import { cancellationFields, disabledFields } from './autoDisable.ts';
import { webhookContext, type WebhookSecrets } from './secrets.ts';
import { webhookAudit, webhookEventData } from './webhookAudit.ts';

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Fields that a caller sets. `eventTypes` is a list of types, or `*` alone or in a list. */
export type WebhookFields = {
  endpointUrl: string;
  eventTypes: readonly string[] | string;
  enabled?: boolean;
  secret?: string;
  description?: string;
  retryPolicy?: Partial<DeliveryRetryPolicy>;
};
/** A webhook as lists show it: `lastDelivery` is its newest one. */
export type ListedWebhook = { webhook: WebhookData; lastDelivery: LastDelivery | null };

export type WebhookFilter = { eventType?: readonly string[] | undefined };

/**
 * A webhook, its secret in the one response that shows it (otherwise null), and advice about a
 * secret that the caller chose.
 */
export type WebhookWithSecret = {
  webhook: WebhookData;
  secret: string | null;
  warnings: readonly Warning[];
};

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  http: GuardedHttp;
  vault: Vault;
  secrets: WebhookSecrets;
};

/** Webhooks: endpoints that subscribe to events. */
export function createWebhooks({ db, commit, access, ids, http, vault, secrets }: Deps) {
  const options = {
    db,
    commit,
    access,
    kind: 'webhook',
    readPermission: 'webhook:read',
    softDelete: true,
  } as const;
  const repository = scopedRepository<Webhook>(Webhook, options);
  /**
   * A deletion waits for legal holds that are being created. It does so before it locks the webhook, since the
   * publication of all events would wait for that.
   */
  const deletions = scopedRepository<Webhook>(Webhook, {
    ...options,
    lockBefore: async (work, { tenantId }) => shareHoldLock(await work.trx(), [tenantId]),
  });

  const checkEndpoint = (url: string): void => checkUrlField(http, url, '/endpointUrl');

  /**
   * The columns of a new secret. The present one, sent again, changes nothing: receivers may still use the
   * one before it. One that cannot be opened any more does not remain as the previous one.
   */
  const rotated = (before: Webhook, secret: string, now: Date): Partial<Webhook> =>
    secrets.isCurrent(before.id, before, secret)
      ? {}
      : {
          secret: secrets.encrypt(before.id, secret),
          ...(secrets.canOpen(before.id, before.secret)
            ? {
                previousSecret: before.secret,
                previousSecretUntil: new Date(now.getTime() + ROTATION_OVERLAP_MS),
              }
            : { previousSecret: null, previousSecretUntil: null }),
        };

  /** The columns that a change of `before` writes. `secret` is the new one in plain text. */
  const changedFields = (
    before: Webhook,
    { endpointUrl, description, eventTypes, enabled, retryPolicy }: Partial<WebhookFields>,
    secret: string | undefined,
    { author, now }: { author: string; now: Date },
  ): Partial<Webhook> => ({
    // Failures of the old endpoint do not count for the new one.
    ...(endpointUrl !== undefined &&
      !isSameEndpoint(before, endpointUrl) && {
        endpointUrl,
        endpointAuthor: author,
        ...HEALTHY,
      }),
    ...(description !== undefined && { description }),
    ...(eventTypes !== undefined && { eventTypes: normalizeEventTypes(eventTypes) }),
    ...(retryPolicy && { retryPolicy: { ...before.retryPolicy, ...retryPolicy } }),
    ...(enabled === true && !before.enabled && enabledFields(now)),
    ...(enabled === false && before.enabled && disabledFields('request', now)),
    ...(secret !== undefined && rotated(before, secret, now)),
  });

  return {
    /** Errors: `not_found`, `permission_denied`. */
    findToAct: repository.findToAct,

    /**
     * A webhook that the caller may read, or has just acted on with `actedWith`. Error: `not_found`.
     */
    read: (caller: Caller, id: string, actedWith?: Permission): Promise<WebhookData> =>
      repository.find(caller, id, actedWith),

    /** The webhooks that the caller may read, each with its newest delivery. */
    async list(
      caller: Caller,
      { eventType }: WebhookFilter,
      request: ListRequest,
    ): Promise<ListAnswer<ListedWebhook>> {
      const answer = await repository.list(caller, request, {
        refine(query) {
          if (eventType !== undefined) whereSubscribedTo(query, eventType);
        },
      });
      const ids = answer.items.map(({ id }) => id);
      const deliveries = await findLastDeliveries(db, ids);
      const byWebhook = new Map(deliveries.map((delivery) => [delivery.webhookId, delivery]));
      return withItems(
        answer,
        answer.items.map((webhook) => ({
          webhook,
          lastDelivery: byWebhook.get(webhook.id) ?? null,
        })),
      );
    },

    /**
     * Creates a webhook in the caller's tenant. A webhook that subscribes to `webhook.created`
     * receives that event about itself. Errors: `permission_denied`, `invalid_request`,
     * `quota_exceeded`, `master_key_missing`.
     */
    async create(caller: Caller, fields: WebhookFields): Promise<WebhookWithSecret> {
      await access.require(caller, 'webhook:write', caller);
      checkEndpoint(fields.endpointUrl);
      const { secret, warnings } = secrets.normalizeOrGenerate(fields.secret);
      const id = ids.next('whk');
      return commit(caller, async (work) => {
        const trx = await work.trx();
        const enabled = fields.enabled ?? true;
        const webhook = await Webhook.query(trx).insertAndFetch({
          id,
          tenantId: caller.tenantId,
          endpointUrl: fields.endpointUrl,
          endpointAuthor: writerKeyOf(caller),
          description: fields.description ?? '',
          eventTypes: normalizeEventTypes(fields.eventTypes),
          enabled,
          enabledAt: work.now,
          disabledAt: enabled ? null : work.now,
          disabledReason: enabled ? null : 'request',
          retryPolicy: { ...DEFAULT_DELIVERY_RETRY, ...fields.retryPolicy },
          secret: secrets.encrypt(id, secret),
          createdBy: caller.actorId,
          createdAt: work.now,
          updatedAt: work.now,
          version: 1,
        });
        webhookAudit.created(work, webhook);
        work.result(id);
        return { webhook, secret, warnings };
      });
    },

    /**
     * Changes the fields that are present. After a new secret, the old one signs as well for a day.
     * A webhook that is enabled again receives the events from then on. Disabling it cancels its
     * pending deliveries. Errors: `not_found`, `permission_denied`, `invalid_request`,
     * `version_conflict`, `master_key_missing`.
     */
    async update(
      caller: Caller,
      id: string,
      fields: Partial<WebhookFields>,
      expectedVersion?: number,
    ): Promise<WebhookWithSecret> {
      const known = await repository.findToAct(caller, id, 'webhook:write');
      if (fields.endpointUrl !== undefined) {
        // One that stays was accepted, whatever the rules are now.
        if (!isSameEndpoint(known, fields.endpointUrl)) checkEndpoint(fields.endpointUrl);
        checkNotMasked(known, fields.endpointUrl);
      }
      const replaced = replacedSecret(fields.secret);
      const chosen = replaced === undefined ? undefined : secrets.normalizeOrGenerate(replaced);
      const secret = chosen?.secret;
      const webhook = await repository.commitLocked(
        caller,
        known,
        expectedVersion,
        async (work, before, trx) => {
          const now = await readDatabaseTime(trx);
          const after = await Webhook.query(trx).patchAndFetchById(id, {
            ...changedFields(before, fields, secret, {
              author: writerKeyOf(caller),
              now,
            }),
            updatedAt: now,
            version: before.version + 1,
          });
          webhookAudit.updated(work, before, after, {
            extra: {
              secretChanged: after.secret !== before.secret,
              endpointChanged: after.endpointUrl !== before.endpointUrl,
            },
          });
          return after;
        },
      );
      return { webhook, secret: null, warnings: chosen?.warnings ?? [] };
    },

    /**
     * Rotates the secret: the requested one, or a new random one. The old secret signs as well for
     * a day. Errors: `not_found`, `permission_denied`, `invalid_request`, `version_conflict`,
     * `master_key_missing`.
     */
    async rotateSecret(
      caller: Caller,
      id: string,
      requested: string | undefined,
      expectedVersion?: number,
    ): Promise<WebhookWithSecret> {
      const known = await repository.findToAct(caller, id, 'webhook:write');
      const { secret, warnings } = secrets.normalizeOrGenerate(requested);
      return repository.commitLocked(caller, known, expectedVersion, async (work, before, trx) => {
        const webhook = await Webhook.query(trx).patchAndFetchById(id, {
          ...rotated(before, secret, work.now),
          updatedAt: work.now,
          version: before.version + 1,
        });
        webhookAudit.acted(work, 'rotate_secret', webhook);
        webhookAudit.emit(work, 'webhook.updated', webhook);
        work.result(id);
        return { webhook, secret, warnings };
      });
    },

    /**
     * Deletes a webhook and its secrets, and cancels its pending deliveries. The others remain
     * readable. Errors: `not_found`, `permission_denied` (`webhook:delete`), `version_conflict`,
     * `legal_hold`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await repository.findToAct(caller, id, 'webhook:delete');
      await deletions.commitLocked(caller, known, expectedVersion, async (work, before, trx) => {
        await assertNotHeld({ access, caller }, trx, before.tenantId, webhookAudit.subject(before));
        const now = await readDatabaseTime(trx);
        await Webhook.query(trx)
          .findById(id)
          .patch({
            ...disabledFields(before.disabledReason ?? 'request', now),
            ...cancellationFields('webhook_deleted', now),
            deletedAt: now,
            updatedAt: now,
            secret: '',
            previousSecret: null,
            previousSecretUntil: null,
            version: before.version + 1,
          });
        work.audit('webhook.delete', webhookAudit.subject(before), {
          before: webhookAudit.auditView(before),
        });
        const data = { ...webhookEventData(before), enabled: false };
        work.emit('webhook.deleted', webhookAudit.subject(before), data);
      });
    },

    /** Encrypts every secret with the current master key that was encrypted with another one. */
    async reencryptSecrets(caller: Caller): Promise<Reencryption> {
      const all = await Webhook.query(db).whereNull('deleted_at');
      const outdated = all.filter((webhook) => secrets.hasOutdated(webhook));
      return reencryptRecords(vault, outdated, ({ id, tenantId }, reencrypter) =>
        commit({ ...caller, tenantId }, async (work) => {
          const trx = await work.trx();
          const row = await Webhook.query(trx).findById(id).whereNull('deleted_at').forUpdate();
          if (!row) throw new NoChange();
          const context = webhookContext(id);
          const reencryptedSecrets = {
            secret: reencrypter.reencrypt(row.secret, context),
            previousSecret:
              row.previousSecret && reencrypter.reencrypt(row.previousSecret, context),
          };
          if (reencrypter.changed() === 0) throw new NoChange();
          await Webhook.query(trx).findById(id).patch(reencryptedSecrets);
          webhookAudit.acted(work, 'reencrypt_secrets', row);
        }),
      );
    },
  };
}

/** True for the endpoint as it is, and as callers see it who did not write it. */
const isSameEndpoint = ({ endpointUrl }: WebhookData, requested: string): boolean =>
  [endpointUrl, maskText(endpointUrl)].includes(requested);

/** Error: `invalid_request` for a new endpoint that contains the mask of a credential. */
function checkNotMasked(webhook: WebhookData, requested: string): void {
  if (requested.includes(MASK) && !isSameEndpoint(webhook, requested))
    throw invalidField(
      'body',
      '/endpointUrl',
      'masked',
      'contains a mask; a changed URL must contain its credentials again',
    );
}

/** The columns of an endpoint that no attempt has failed at yet. */
const HEALTHY = { failingSince: null, unreachableSince: null, probedAt: null };

const enabledFields = (enabledAt: Date) => ({
  enabled: true,
  enabledAt,
  disabledAt: null,
  disabledReason: null,
  ...HEALTHY,
});

/** Sorted and without duplicates; `*` includes every type, so it replaces the others. */
const normalizeEventTypes = (types: readonly string[] | string): string[] =>
  types.includes(ALL_EVENT_TYPES) ? [ALL_EVENT_TYPES] : [...new Set(types)].sort();
