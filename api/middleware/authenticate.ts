import type { Context } from 'koa';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Audit } from '../../services/audit.ts';
import type { UserRights } from '../../services/access/rights.ts';
import type { Sessions } from '../../services/auth/sessions.ts';
import type { Peer } from './clientAddress.ts';

type Deps = { peer: Peer; audit: Audit; sessions: Sessions; rights: UserRights };

const HEADERS = {
  actor: 'x-service-actor-id',
  roles: 'x-service-role-ids',
  tenant: 'x-service-tenant-id',
} as const;

const ACTOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;
const TENANT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const MAX_ROLES = 100;

/** RFC 6750, 2.1. */
const BEARER = /^Bearer ([A-Za-z0-9._~+/-]{1,512}=*)$/i;

/**
 * Finds out who asks: a session, by `Authorization`, or identity headers, which are believed from trusted gateways
 * only. Never both. Areas that need the tenant named say so with `tenantNamed`.
 */
export function createIdentify({ peer, audit, sessions, rights }: Deps) {
  async function refuse(ctx: Context, caller: Caller): Promise<never> {
    const claimed = {
      actorId: ctx.get(HEADERS.actor).slice(0, 255),
      method: ctx.method,
      path: ctx.path.slice(0, 255),
    };
    await audit.denied(caller, 'identity.untrusted', claimed);
    throw new AppError('identity_required', 'Identity headers are not accepted from this address.');
  }

  return async (ctx: Context, options: { tenantNamed?: boolean } = {}): Promise<Caller> => {
    const base = { requestId: ctx.state.requestId as string, address: peer.addressOf(ctx) };
    const sent = ctx.req.headersDistinct;
    const named = Object.values(HEADERS).some((name) => sent[name] !== undefined);
    if (sent.authorization !== undefined) {
      if (named)
        throw invalidField(
          'header',
          '/Authorization',
          'exclusive',
          'cannot be combined with identity headers',
        );
      return sessions.authenticate(bearerToken(sent.authorization), base);
    }
    if (!named)
      throw new AppError(
        'identity_required',
        'The request has no identity: sign in with POST /api/auth/login/local and send the access token as Authorization: Bearer.',
      );
    if (!peer.isTrusted(ctx.req.socket.remoteAddress)) return refuse(ctx, anonymousCaller(base));
    const actorId = one(sent, HEADERS.actor, ACTOR);
    const roles = roleIds(one(sent, HEADERS.roles, /^[\x20-\x7e]{1,4096}$/));
    const tenantGiven = options.tenantNamed === true || sent[HEADERS.tenant] !== undefined;
    const tenantId = tenantGiven ? one(sent, HEADERS.tenant, TENANT) : PLATFORM;
    return {
      ...base,
      kind: 'gateway',
      actorId,
      tenantId,
      rights: await rights.ofRoles(roles, tenantId),
    };
  };
}

/** The token of the only `Authorization` header. Error: `session_invalid`. */
function bearerToken(values: readonly string[]): string {
  const token = values.length === 1 ? BEARER.exec(values[0]?.trim() ?? '')?.[1] : undefined;
  if (token === undefined)
    throw new AppError('session_invalid', 'Authorization must be Bearer and an access token.');
  return token;
}

/** The only value of a required header. Errors: `identity_required`; `invalid_request` for a value of no use. */
function one(sent: NodeJS.Dict<string[]>, name: string, form: RegExp): string {
  const values = sent[name] ?? [];
  const value = values[0]?.trim() ?? '';
  if (values.length > 1) throw new AppError('identity_required', `The header ${name} is repeated.`);
  if (value === '')
    throw new AppError('identity_required', `The header ${name} is missing or empty.`);
  if (!form.test(value))
    throw invalidField('header', `/${name}`, 'format', 'has a form that no id has');
  return value;
}

function roleIds(header: string): string[] {
  const ids = header
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  if (ids.length === 0)
    throw new AppError('identity_required', `The header ${HEADERS.roles} names no role.`);
  if (ids.length > MAX_ROLES) {
    throw invalidField(
      'header',
      `/${HEADERS.roles}`,
      'maxItems',
      `must not name more than ${MAX_ROLES} roles`,
    );
  }
  return ids;
}
