import type { Knex } from '../../../db/core/knex.ts';
import { PERMISSIONS, type Permission } from '../../../domain/access/permissions.ts';
import type { ResourceScope } from '../../../domain/access/scope.ts';
import { wideningErrors, widening } from '../../../domain/access/tokenScope.ts';
import type { TokenDetails } from '../../../domain/auth/tokens.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import {
  AppError,
  invalidField,
  invalidFields,
  type FieldError,
} from '../../../domain/shared/errors.ts';
import { isWithinNetwork, readNetwork } from '../../../platform/network.ts';
import type { Access } from '../../access/access.ts';
import {
  requesterOf,
  resolveResourceScope,
  type ResourceScopeRequest,
} from '../../access/resourceScope.ts';

/** The limits of a token in a request. Missing ones, and null, mean no limit. */
export type TokenLimits = {
  permissions?: Permission[] | null;
  resourceScopes?: ResourceScopeRequest[] | null;
  jobTypes?: string[] | null;
  readOnly?: boolean;
  allowedNetworks?: string[] | null;
  requestsPerMinute?: number | null;
  expiresAt?: Date;
};

/** The same with complete resource scopes. */
export type CheckedLimits = Omit<TokenLimits, 'resourceScopes'> & {
  resourceScopes?: ResourceScope[] | null;
};

/** Errors about a field of one of several objects get the position of the object. */
async function at<T>(pointer: string, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof AppError) || !error.extra.errors) throw error;
    throw invalidFields(
      error.extra.errors.map((each) => ({ ...each, pointer: `${pointer}${each.pointer}` })),
    );
  }
}

/**
 * Completes the resource scopes of a request. Sites and devices must be visible to the caller; whether
 * the caller holds anything there does not matter, since a token never exceeds its owner. Error:
 * `invalid_request`.
 */
export async function checkLimits(
  { db, access }: { db: Knex; access: Access },
  caller: Caller,
  { resourceScopes, ...request }: TokenLimits,
): Promise<CheckedLimits> {
  const limits = {
    ...request,
    ...(request.allowedNetworks && { allowedNetworks: readNetworks(request.allowedNetworks) }),
  };
  if (resourceScopes === undefined) return limits;
  if (resourceScopes === null) return { ...limits, resourceScopes };
  const requester = requesterOf(access, caller, ...PERMISSIONS);
  const resolved: ResourceScope[] = [];
  for (const [i, request] of resourceScopes.entries()) {
    const { resourceScope } = await at(`/resourceScopes/${i}`, () =>
      resolveResourceScope(db, request, requester, 'body'),
    );
    resolved.push(resourceScope);
  }
  return { ...limits, resourceScopes: resolved };
}

/** CIDRs in canonical form. Error: `invalid_request`. */
const readNetworks = (networks: readonly string[]): string[] =>
  networks.map((text, i) => {
    const read = readNetwork(text);
    if ('network' in read) return read.network;
    throw invalidField('body', `/allowedNetworks/${i}`, 'format', read.problem);
  });

/** "In 90 days" by a clock that is ahead, or by the calendar of a zone whose clocks change, is a little more. */
const TOLERANCE_MS = DAY_MS;

/** Error: `invalid_request` unless a token may expire then. */
export function checkExpiry(expiresAt: Date, now: Date, maxDays: number): void {
  if (expiresAt <= now)
    throw invalidField('body', '/expiresAt', 'in_the_past', 'must be in the future');
  if (expiresAt.getTime() > now.getTime() + maxDays * DAY_MS + TOLERANCE_MS)
    throw invalidField('body', '/expiresAt', 'too_far_ahead', `must be within ${maxDays} days`);
}

/** The fields that would let a token do more, from more addresses, more often or longer. */
export function wideningOf(before: TokenDetails, change: CheckedLimits): FieldError[] {
  const { allowedNetworks: networks, requestsPerMinute: rate, expiresAt } = change;
  const isOutside = (network: string) =>
    !(before.allowedNetworks ?? []).some((known) => isWithinNetwork(known, network));
  const widened = {
    allowedNetworks:
      networks !== undefined &&
      before.allowedNetworks !== null &&
      (networks === null || networks.some(isOutside)),
    requestsPerMinute:
      rate !== undefined &&
      before.requestsPerMinute !== null &&
      (rate === null || rate > before.requestsPerMinute),
    expiresAt: expiresAt !== undefined && expiresAt > before.expiresAt,
  };
  return [
    ...wideningErrors(before, change),
    ...Object.entries(widened).flatMap(([field, isWidened]) =>
      isWidened ? [widening(field)] : [],
    ),
  ];
}
