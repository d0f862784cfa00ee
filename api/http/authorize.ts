import type { Context } from 'koa';
import type { Access } from '../../services/access/access.ts';
import { requireSessionId } from '../../services/auth/sessions.ts';
import { shareTenantOf } from '../../domain/access/scope.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { connectionsAreFor } from '../../platform/connectionUser.ts';
import type { ClientAddress } from '../middleware/clientAddress.ts';
import { permissionsOf, type Exchange, type Route } from './route.ts';

export type AuthorizeDeps = {
  access: Access;
  authenticate(ctx: Context, options: { requiresTenantHeader: boolean }): Promise<Caller>;
  clientAddress: ClientAddress;
};

/**
 * Authenticates the caller and checks the permission of the route. Errors: those of `authenticate`;
 * `session_invalid`, `token_not_accepted`, `password_change_required`, `permission_denied`.
 */
export async function authorizeCaller({
  route,
  deps,
  ctx,
}: Exchange<AuthorizeDeps>): Promise<Caller> {
  if (route.public !== undefined) {
    return anonymousCaller({
      requestId: ctx.state.requestId as string,
      address: deps.clientAddress.addressOf(ctx),
    });
  }
  const caller = await deps.authenticate(ctx, {
    requiresTenantHeader: route.requiresTenantHeader ?? false,
  });
  ctx.state.isAuthenticated = true;
  connectionsAreFor(shareTenantOf(caller));
  if (route.runner !== undefined) requireRunner(caller);
  else if (caller.runner && !route.allowsRunners)
    throw new AppError('token_not_accepted', 'The token of a runner is for `/api/runner` only.');
  if (caller.token) await authorizeToken(route, caller, caller.token, deps.access);
  if (route.session !== undefined) requireSessionId(caller);
  if (route.session !== undefined || route.allowsOneTimePassword) return caller;
  requireOwnPassword(caller);
  const [permission, ...others] = permissionsOf(route);
  if (permission !== undefined && !route.permissionCheckedInHandler)
    await deps.access.requireAnywhere(caller, permission, ...others);
  return caller;
}

/** The runner of a request. Error: `permission_denied` for another caller. */
export function requireRunner({ runner }: Caller): NonNullable<Caller['runner']> {
  if (!runner)
    throw new AppError('permission_denied', 'Only runners do this, with a token of their own.');
  return runner;
}

/** Error: `password_change_required` for a caller with a one-time password. */
export function requireOwnPassword({ session }: Caller): void {
  if (session?.mustChangePassword)
    throw new AppError(
      'password_change_required',
      'A one-time password must be changed first, with POST /api/auth/password.',
    );
}

/** Errors: `token_not_accepted`, `permission_denied`. */
async function authorizeToken(
  { session, refusesTokens = session, tokenPermissions, allowsReadOnly, method }: Route,
  caller: Caller,
  { readOnly }: NonNullable<Caller['token']>,
  access: Access,
): Promise<void> {
  if (refusesTokens !== undefined)
    throw new AppError('token_not_accepted', `Not possible with an API token: ${refusesTokens}.`);
  if (readOnly && method !== 'GET' && !allowsReadOnly)
    throw new AppError('token_not_accepted', 'The token can only read.');
  if (tokenPermissions) await access.requireAnywhere(caller, ...tokenPermissions);
}
