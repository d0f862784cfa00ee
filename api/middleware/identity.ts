import ipaddr from 'ipaddr.js';
import type { Context } from 'koa';
import type { Caller } from '../../domain/caller.ts';
import { AppError, invalidField } from '../../domain/errors.ts';
import { PLATFORM } from '../../domain/scope.ts';
import type { Audit } from '../../services/audit.ts';

type Deps = { trustedGateways: readonly string[]; audit: Audit };

const HEADERS = { actor: 'x-service-actor-id', roles: 'x-service-role-ids', tenant: 'x-service-tenant-id' } as const;

const ACTOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;
const TENANT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const MAX_ROLES = 100;

/**
 * Finds out who asks. Identity headers are believed from trusted gateways only; sessions, the other way, are
 * the business of `Authorization`. Never both. Areas that need the tenant named say so with `tenantRequired`.
 */
export function createIdentify({ trustedGateways, audit }: Deps) {
  const trusted = trustedGateways.map((cidr) => ipaddr.parseCIDR(cidr));

  function isTrusted(address: string | undefined): boolean {
    if (address === undefined) return false;
    const peer = ipaddr.process(address.replace(/%.*$/, ''));
    return trusted.some(([net, bits]) => peer.kind() === net.kind() && peer.match(net, bits));
  }

  async function refuse(ctx: Context, caller: Caller): Promise<never> {
    const claimed = { actorId: ctx.get(HEADERS.actor).slice(0, 255), method: ctx.method, path: ctx.path.slice(0, 255) };
    await audit.denied(caller, 'identity.untrusted', claimed);
    throw new AppError('identity_required', 'Identity headers are not accepted from this address.');
  }

  return async (ctx: Context, options: { tenantRequired?: boolean } = {}): Promise<Caller> => {
    const base = {
      requestId: ctx.state.requestId as string, address: ctx.req.socket.remoteAddress ?? null, tenantId: PLATFORM,
    };
    const sent = ctx.req.headersDistinct;
    const named = Object.values(HEADERS).some((name) => sent[name] !== undefined);
    if (sent.authorization !== undefined) {
      if (named) throw invalidField('header', '/Authorization', 'exclusive', 'cannot be combined with identity headers');
      throw new AppError('session_invalid', 'The session is unknown, expired or revoked.');
    }
    if (!named) throw new AppError('identity_required', 'The request has no identity.');
    if (!isTrusted(ctx.req.socket.remoteAddress)) {
      return refuse(ctx, { ...base, kind: 'anonymous', actorId: 'anonymous', grants: [] });
    }
    const actorId = one(sent, HEADERS.actor, ACTOR);
    const roles = roleIds(one(sent, HEADERS.roles, /^[\x20-\x7e]{1,4096}$/));
    const tenantGiven = options.tenantRequired === true || sent[HEADERS.tenant] !== undefined;
    const tenantId = tenantGiven ? one(sent, HEADERS.tenant, TENANT) : PLATFORM;
    return { ...base, kind: 'gateway', actorId, tenantId, grants: roles.map((roleId) => ({ roleId, tenantId })) };
  };
}

/** The only value of a required header. Errors: `identity_required`; `invalid_request` for a value of no use. */
function one(sent: NodeJS.Dict<string[]>, name: string, form: RegExp): string {
  const values = sent[name] ?? [];
  const value = values[0]?.trim() ?? '';
  if (values.length > 1) throw new AppError('identity_required', `The header ${name} is repeated.`);
  if (value === '') throw new AppError('identity_required', `The header ${name} is missing or empty.`);
  if (!form.test(value)) throw invalidField('header', `/${name}`, 'format', 'has a form that no id has');
  return value;
}

function roleIds(header: string): string[] {
  const ids = header.split(',').map((id) => id.trim()).filter((id) => id !== '');
  if (ids.length === 0) throw new AppError('identity_required', `The header ${HEADERS.roles} names no role.`);
  if (ids.length > MAX_ROLES) {
    throw invalidField('header', `/${HEADERS.roles}`, 'maxItems', `must not name more than ${MAX_ROLES} roles`);
  }
  return ids;
}
