import type { Commit, Work } from '../db/commit.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../db/core/keyset.ts';
import type { Knex } from '../db/core/knex.ts';
import { Webhook } from '../db/models/Webhook.ts';
import { whereInScope } from '../db/core/scopeSql.ts';
import { lockWebhooks } from '../db/webhooks.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField, notFound } from '../domain/shared/errors.ts';
import { EVERY_EVENT } from '../domain/events/events.ts';
import { MASK } from '../domain/mask.ts';
import type { Permission } from '../domain/access/permissions.ts';
import {
  DEFAULT_DELIVERY_RETRY,
  MAX_WEBHOOKS,
  ROTATION_MS,
  type DeliveryRetryPolicy,
} from '../domain/webhooks/webhooks.ts';
import { OutboundError } from '../platform/addressGuard.ts';
import type { GuardedHttp } from '../platform/guardedHttp.ts';
import type { Ids } from '../platform/ids.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import { cancelling, disabled } from './webhookDisable.ts';
import type { WebhookSecrets } from './webhookSecrets.ts';
import { webhookEvent, webhookSubject, webhookView } from './webhookTrail.ts';

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Fields that a caller sets. `eventTypes` is a list of names, or `*` by itself or among them. */
export type WebhookFields = {
  endpointUrl: string;
  eventTypes: readonly string[] | string;
  enabled?: boolean;
  secret?: string;
  description?: string;
  retryPolicy?: Partial<DeliveryRetryPolicy>;
};
export type WebhookFilter = { enabled?: boolean; eventType?: string; tenantId?: string };

/** A webhook, and its secret where it is shown this once. */
export type WebhookWithSecret = { webhook: Webhook; secret: string | null };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  ids: Ids;
  http: GuardedHttp;
  secrets: WebhookSecrets;
};

/** Registrations of endpoints that are told of events. */
export function createWebhooks({ db, commit, access, ids, http, secrets }: Deps) {
  const visible = (caller: Caller, permission: Permission) => {
    const query = Webhook.query(db).whereNull('deleted_at');
    whereInScope(query, access.scope(caller, permission));
    return query;
  };

  async function find(caller: Caller, id: string): Promise<Webhook> {
    const webhook = await visible(caller, 'webhook:read').findById(id);
    if (!webhook) throw notFound('webhook', id);
    return webhook;
  }

  /** A webhook that the caller sees, to be acted on with another permission held where it stands. */
  async function findToAct(caller: Caller, id: string, permission: Permission): Promise<Webhook> {
    const webhook = await find(caller, id);
    await access.require(caller, permission, webhook);
    return webhook;
  }

  /** An address that no delivery will ever be sent to is refused at once; what a name resolves to is seen at each try. */
  function checkEndpoint(url: string): void {
    try {
      http.checkUrl(url);
    } catch (error) {
      if (error instanceof OutboundError)
        throw invalidField('body', '/endpointUrl', error.code, error.message);
      throw error;
    }
  }

  /** Runs a change of a webhook that is there, with its row locked, in its tenant's trail. */
  const changing = async <T>(
    caller: Caller,
    { id, tenantId }: Webhook,
    expectedVersion: number | undefined,
    change: (work: Work<DispatchTask>, before: Webhook, trx: Knex) => Promise<T>,
  ): Promise<T> =>
    commit({ ...caller, tenantId }, async (work) => {
      const trx = await work.trx();
      const before = await Webhook.query(trx).findById(id).whereNull('deleted_at').forUpdate();
      if (!before) throw notFound('webhook', id);
      checkVersion(before, expectedVersion);
      return change(work, before, trx);
    });

  return {
    /** Errors: `not_found`, `permission_denied`. */
    findToAct,

    /** Error: `not_found`. */
    read: find,

    /** Webhooks inside the caller's scope, newest first. */
    list(
      caller: Caller,
      { enabled, eventType, tenantId }: WebhookFilter,
      page: PageRequest,
    ): Promise<Page<Webhook>> {
      const query = visible(caller, 'webhook:read');
      whereGiven(query, { enabled, tenant_id: tenantId });
      if (eventType !== undefined)
        void query.whereRaw('event_types && ?::text[]', [[eventType, EVERY_EVENT]]);
      return keysetPage(query, page);
    },

    /**
     * Registers a webhook at the caller's tenant. One that wants `webhook.created` is told of itself first. Errors:
     * `permission_denied`, `invalid_request`, `limit_reached`, `master_key_missing`.
     */
    async create(caller: Caller, fields: WebhookFields): Promise<WebhookWithSecret> {
      await access.require(caller, 'webhook:write', caller);
      checkEndpoint(fields.endpointUrl);
      const secret = secrets.chosenOrMade(fields.secret);
      const id = ids.next('whk');
      return commit(caller, async (work) => {
        const trx = await work.trx();
        await lockWebhooks(trx, caller.tenantId);
        const count = await Webhook.query(trx)
          .where({ tenant_id: caller.tenantId })
          .whereNull('deleted_at')
          .resultSize();
        if (count >= MAX_WEBHOOKS)
          throw new AppError(
            'limit_reached',
            `The tenant has ${MAX_WEBHOOKS} webhooks, which is the most it may have.`,
          );
        const enabled = fields.enabled ?? true;
        const webhook = await Webhook.query(trx).insertAndFetch({
          id,
          tenantId: caller.tenantId,
          endpointUrl: fields.endpointUrl,
          description: fields.description ?? '',
          eventTypes: typesOf(fields.eventTypes),
          enabled,
          enabledAt: work.now,
          disabledAt: enabled ? null : work.now,
          disabledReason: enabled ? null : 'request',
          retryPolicy: { ...DEFAULT_DELIVERY_RETRY, ...fields.retryPolicy },
          secret: secrets.seal(id, secret),
          createdBy: caller.actorId,
          createdAt: work.now,
          updatedAt: work.now,
          version: 1,
        });
        work.audit('webhook.create', webhookSubject(webhook), { after: webhookView(webhook) });
        work.emit('webhook.created', webhookSubject(webhook), webhookEvent(webhook));
        return { webhook, secret };
      });
    },

    /**
     * Changes what is given. A new secret signs beside the old one for a day. Enabled again, it gets what happens from
     * then on; disabled, its waiting deliveries are cancelled. Errors: `not_found`, `permission_denied`, `invalid_request`,
     * `version_stale`, `master_key_missing`.
     */
    async update(
      caller: Caller,
      id: string,
      fields: Partial<WebhookFields>,
      expectedVersion?: number,
    ): Promise<Webhook> {
      const known = await findToAct(caller, id, 'webhook:write');
      if (fields.endpointUrl !== undefined) checkEndpoint(fields.endpointUrl);
      const secret =
        fields.secret === undefined || fields.secret === MASK
          ? undefined
          : secrets.chosenOrMade(fields.secret);
      return changing(caller, known, expectedVersion, async (work, before, trx) => {
        const { endpointUrl, description, eventTypes, enabled, retryPolicy } = fields;
        const after = await Webhook.query(trx).patchAndFetchById(id, {
          // How long it has failed says nothing about another endpoint.
          ...(endpointUrl !== undefined &&
            endpointUrl !== before.endpointUrl && { endpointUrl, failingSince: null }),
          ...(description !== undefined && { description }),
          ...(eventTypes !== undefined && { eventTypes: typesOf(eventTypes) }),
          ...(retryPolicy && { retryPolicy: { ...before.retryPolicy, ...retryPolicy } }),
          ...(enabled === true &&
            !before.enabled && {
              enabled,
              enabledAt: work.now,
              disabledAt: null,
              disabledReason: null,
              failingSince: null,
            }),
          ...(enabled === false && before.enabled && disabled('request', work.now)),
          ...(secret !== undefined && rotated(before, secrets.seal(id, secret), work.now)),
          updatedAt: work.now,
          version: before.version + 1,
        });
        work.audit('webhook.update', webhookSubject(after), {
          before: webhookView(before),
          after: { ...webhookView(after), secretChanged: secret !== undefined },
        });
        work.emit('webhook.updated', webhookSubject(after), webhookEvent(after));
        return after;
      });
    },

    /**
     * Gives a webhook a new secret, made up unless chosen; the old one signs beside it for a day. Errors: `not_found`,
     * `permission_denied`, `invalid_request`, `version_stale`, `master_key_missing`.
     */
    async rotateSecret(
      caller: Caller,
      id: string,
      chosen: string | undefined,
      expectedVersion?: number,
    ): Promise<WebhookWithSecret> {
      const known = await findToAct(caller, id, 'webhook:write');
      const secret = secrets.chosenOrMade(chosen);
      return changing(caller, known, expectedVersion, async (work, before, trx) => {
        const webhook = await Webhook.query(trx).patchAndFetchById(id, {
          ...rotated(before, secrets.seal(id, secret), work.now),
          updatedAt: work.now,
          version: before.version + 1,
        });
        work.audit('webhook.rotate_secret', webhookSubject(webhook));
        work.emit('webhook.updated', webhookSubject(webhook), webhookEvent(webhook));
        return { webhook, secret };
      });
    },

    /**
     * Takes a registration away with its secrets; its waiting deliveries are cancelled, those that were made stay
     * readable with their events. Errors: `not_found`, `permission_denied` (`webhook:delete`), `version_stale`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      const known = await findToAct(caller, id, 'webhook:delete');
      await changing(caller, known, expectedVersion, async (work, before, trx) => {
        await Webhook.query(trx)
          .findById(id)
          .patch({
            ...disabled(before.disabledReason ?? 'request', work.now),
            ...cancelling('webhook_deleted', work.now),
            deletedAt: work.now,
            updatedAt: work.now,
            secret: '',
            previousSecret: null,
            previousSecretUntil: null,
            version: before.version + 1,
          });
        work.audit('webhook.delete', webhookSubject(before), { before: webhookView(before) });
        work.emit('webhook.deleted', webhookSubject(before), {
          ...webhookEvent(before),
          enabled: false,
        });
      });
    },

    /** Seals every secret that an older key has sealed under the first one. Returns how many. */
    async resealAll(caller: Caller): Promise<number> {
      let resealed = 0;
      for (const {
        id,
        tenantId,
        secret: sealed,
        previousSecret: sealedBefore,
      } of await Webhook.query(db).whereNull('deleted_at')) {
        const stale = secrets.countStale([sealed, sealedBefore]);
        if (stale === 0) continue;
        await commit({ ...caller, tenantId }, async (work) => {
          const trx = await work.trx();
          const row = await Webhook.query(trx).findById(id).forUpdate().throwIfNotFound();
          await Webhook.query(trx)
            .findById(id)
            .patch({
              secret: secrets.reseal(id, row.secret),
              previousSecret: row.previousSecret && secrets.reseal(id, row.previousSecret),
            });
          work.audit('webhook.reseal', webhookSubject(row));
        });
        resealed += stale;
      }
      return resealed;
    },
  };
}

const rotated = ({ secret }: Webhook, sealed: string, now: Date) => ({
  secret: sealed,
  previousSecret: secret,
  previousSecretUntil: new Date(now.getTime() + ROTATION_MS),
});

/** `*` stands for every type, so that others beside it say nothing. */
const typesOf = (types: readonly string[] | string): string[] =>
  types.includes(EVERY_EVENT) ? [EVERY_EVENT] : [...new Set(types)].sort();
