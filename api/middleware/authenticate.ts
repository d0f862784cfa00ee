import type { Context } from 'koa';
import { TENANT_ID, TENANT_ID_RULE } from '../../domain/access/tenantId.ts';
import { refuseBuiltInNames } from '../../domain/shared/builtInActors.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { connectionsAreFor } from '../../platform/connectionUser.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { DeniedAttempts } from '../../services/audit/deniedAttempts.ts';
import type { UserRights } from '../../services/access/rights.ts';
import type { IdentityClaims } from '../../services/auth/identityClaims.ts';
import type { Sessions } from '../../services/auth/sessions.ts';
import { hasValidChecksum, isTokenText } from '../../domain/auth/tokenText.ts';
import {
  tokenInvalid,
  type TokenAuthentication,
} from '../../services/auth/apiTokens/authentication.ts';
import { hashToken } from '../../services/auth/hashToken.ts';
import type { ClientAddress } from './clientAddress.ts';
import type { Strangers } from './strangers.ts';

type Deps = {
  tokenAuthentication: TokenAuthentication;
  clientAddress: ClientAddress;
  deniedAttempts: DeniedAttempts;
  sessions: Sessions;
  rights: UserRights;
  strangers: Strangers;
};

const HEADERS = {
  actor: 'x-service-actor-id',
  roles: 'x-service-role-ids',
  tenant: 'x-service-tenant-id',
} as const;

const ACTOR = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;
const TENANT = new RegExp(TENANT_ID);
const ROLES = /^[\x20-\x7e]{1,4096}$/;
const HEADER_RULES: Readonly<Record<string, string>> = {
  [HEADERS.actor]: 'must be 1 to 255 printable ASCII characters',
  [HEADERS.roles]: 'must be a list of role ids, separated by commas, in printable ASCII',
  [HEADERS.tenant]: TENANT_ID_RULE,
};
const MAX_ROLES = 100;

type RequestInfo = Pick<Caller, 'requestId' | 'address'>;

/** Bearer token (RFC 6750, 2.1). */
const BEARER = /^Bearer ([A-Za-z0-9._~+/-]{1,512}=*)$/i;

/**
 * Authenticates a request by the access token of a session, by an API token, or by identity headers of
 * a trusted gateway. With a token, the headers only choose the tenant and narrow the rights of the
 * request. With `requiresTenantHeader`, gateways must name the tenant. Errors: `identity_required`,
 * `identity_mismatch`, `session_invalid`, `token_invalid`, `address_not_allowed`, `invalid_request`;
 * `too_many_requests` if the address has used up the budget of strangers, or the token its own.
 */
export function createAuthenticate({
  clientAddress,
  deniedAttempts,
  sessions,
  tokenAuthentication,
  rights,
  strangers,
}: Deps) {
  const identify = (ctx: Context, token: string, requestInfo: RequestInfo): Promise<Caller> => {
    const { address } = requestInfo;
    if (isTokenText(token) && !hasValidChecksum(token)) {
      strangers.reject(address);
      throw tokenInvalid('is not complete or has a typo');
    }
    // Streams authenticate again, and requests whose body was slow.
    const isRepeated = ctx.state.isAuthenticated === true;
    return strangers.identify(
      address,
      hashToken(token),
      () =>
        isTokenText(token)
          ? tokenAuthentication.authenticate(token, requestInfo, { isRepeated })
          : sessions.authenticate(token, requestInfo),
      { isRepeated },
    );
  };

  async function rejectUntrusted(ctx: Context, caller: Caller, message: string): Promise<never> {
    const claimed = {
      actorId: ctx.get(HEADERS.actor).slice(0, 255),
      method: ctx.method,
      path: ctx.path.slice(0, 255),
    };
    await deniedAttempts.record(caller, 'identity.untrusted', claimed);
    throw new AppError('identity_required', message);
  }

  return async (
    ctx: Context,
    options: { requiresTenantHeader?: boolean } = {},
  ): Promise<Caller> => {
    const requestInfo = {
      requestId: ctx.state.requestId as string,
      address: clientAddress.addressOf(ctx),
    };
    const headers = ctx.req.headersDistinct;
    const hasIdentityHeaders = Object.values(HEADERS).some((name) => headers[name] !== undefined);
    if (headers.authorization !== undefined) {
      const token = bearerToken(headers.authorization);
      if (token === undefined) {
        strangers.reject(requestInfo.address);
        throw new AppError(
          'session_invalid',
          'The Authorization header must be "Bearer" and an access token.',
        );
      }
      const caller = await identify(ctx, token, requestInfo);
      return hasIdentityHeaders ? sessions.applyClaims(caller, readClaims(headers)) : caller;
    }
    const distrust = reasonToDistrust(clientAddress, ctx);
    // Before the attempt is audited.
    if (!hasIdentityHeaders || distrust !== undefined) strangers.reject(requestInfo.address);
    if (!hasIdentityHeaders)
      throw new AppError(
        'identity_required',
        'The request is not authenticated. Sign in with POST /api/auth/login/local and send the access token, or an API token, as Authorization: Bearer.',
      );
    if (distrust !== undefined) return rejectUntrusted(ctx, anonymousCaller(requestInfo), distrust);
    if (clientAddress.isForgeable(ctx))
      throw invalidField(
        'header',
        '/Origin',
        'origin',
        'must be that of the API for a POST that a form could send; send Content-Type: application/json',
      );
    const actorId = requiredHeader(headers, HEADERS.actor, ACTOR);
    refuseBuiltInNames('header', { [`/${HEADERS.actor}`]: actorId });
    const roles = parseRoleIds(requiredHeader(headers, HEADERS.roles, ROLES));
    const usesTenantHeader =
      options.requiresTenantHeader === true || headers[HEADERS.tenant] !== undefined;
    const tenantId = usesTenantHeader ? requiredHeader(headers, HEADERS.tenant, TENANT) : PLATFORM;
    connectionsAreFor(tenantId);
    return {
      ...requestInfo,
      kind: 'gateway',
      actorId,
      tenantId,
      rights: await rights.forRoles(roles, tenantId),
    };
  };
}

/** Why identity headers do not count; undefined if they do. */
function reasonToDistrust(clientAddress: ClientAddress, ctx: Context): string | undefined {
  if (!clientAddress.isTrusted(ctx.req.socket.remoteAddress))
    return 'Identity headers are not accepted from this address.';
  return clientAddress.isForGatewayHost(ctx)
    ? undefined
    : 'Identity headers are not accepted for this Host; HOLDFAST_GATEWAY_HOSTS names those that are.';
}

/** Token of the `Authorization` header, which must not be repeated; undefined if it has none. */
const bearerToken = (values: readonly string[]): string | undefined =>
  values.length === 1 ? BEARER.exec(values[0]?.trim() ?? '')?.[1] : undefined;

/**
 * The value of a required header, which must not be repeated. Errors: `identity_required`;
 * `invalid_request` if it does not match the pattern.
 */
function requiredHeader(headers: NodeJS.Dict<string[]>, name: string, pattern: RegExp): string {
  const values = headers[name] ?? [];
  const value = values[0]?.trim() ?? '';
  if (values.length > 1) throw new AppError('identity_required', `The header ${name} is repeated.`);
  if (value === '')
    throw new AppError('identity_required', `The header ${name} is missing or empty.`);
  if (!pattern.test(value))
    throw invalidField('header', `/${name}`, 'format', HEADER_RULES[name] ?? 'has an invalid form');
  return value;
}

/** The identity headers of a request with a token. Error: `identity_mismatch`. */
function readClaims(headers: NodeJS.Dict<string[]>): IdentityClaims {
  const claimed = (name: string, pattern: RegExp): string | undefined => {
    const values = headers[name];
    if (!values) return undefined;
    const value = values[0]?.trim() ?? '';
    if (values.length > 1 || !pattern.test(value) || splitList(value).length === 0)
      throw new AppError(
        'identity_mismatch',
        `The header ${name} is repeated, empty or not well-formed.`,
      );
    return value;
  };
  const actorId = claimed(HEADERS.actor, ACTOR);
  const roleIds = claimed(HEADERS.roles, ROLES);
  const tenantId = claimed(HEADERS.tenant, TENANT);
  return {
    ...(actorId !== undefined && { actorId }),
    ...(roleIds !== undefined && { roleIds: splitList(roleIds) }),
    ...(tenantId !== undefined && { tenantId }),
  };
}

const splitList = (header: string): string[] =>
  header
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');

function parseRoleIds(header: string): string[] {
  const ids = splitList(header);
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
