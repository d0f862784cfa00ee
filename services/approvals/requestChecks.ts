import { findHolders, findRoles, type Holder } from '../../db/access/access.ts';
import { knownNamesOf } from '../../db/approvals/names.ts';
import type { Knex } from '../../db/core/knex.ts';
import { PLATFORM, type ResourceScope } from '../../domain/access/scope.ts';
import { MAX_AHEAD_MS } from '../../domain/approvals/approvals.ts';
import { isSamePerson, namesMeaning } from '../../domain/approvals/names.ts';
import { builtInNames } from '../../domain/shared/builtInActors.ts';
import type { FieldError } from '../../domain/shared/errors.ts';
import type { ApprovalRequest } from './approvalRequest.ts';
import { counted } from '../../domain/shared/counted.ts';

const bodyError = (pointer: string, code: string, message: string): FieldError => ({
  in: 'body',
  pointer,
  code,
  message,
});

/** Ids of accounts start with it. Any other id names a person whom a gateway authenticates. */
const ACCOUNT_ID_PREFIX = 'usr_';

/** The requester, as far as the check of the assignees depends on it. */
type Requester = {
  /** See `recordedNames`. */
  names: readonly string[];
  /** True for an account that the requester may read. */
  mayRead(account: Holder): boolean;
};

/**
 * Checks that assigned roles and accounts exist, and that enough of the assigned users besides the
 * requester may approve. People whom a gateway authenticates count: Holdfast learns what they may
 * do only when they call. An account of another tenant exists for requesters who may
 * read it, and if it may approve here. Returns the field errors.
 */
export async function checkAssignees(
  db: Knex,
  requester: Requester,
  { assignedUserIds, assignedRoleIds, requiredApprovals = 1 }: ApprovalRequest,
  resourceScope: ResourceScope,
): Promise<FieldError[]> {
  const [users, roles] = [
    await findHolders(db, assignedUserIds, 'workflow:approve', resourceScope),
    await findRoles(db, assignedRoleIds),
  ];
  const { tenantId } = resourceScope;
  const exists = (account: Holder) =>
    account.holds || [tenantId, PLATFORM].includes(account.tenantId) || requester.mayRead(account);
  const activeIds = new Set(
    users.filter((account) => account.enabled && exists(account)).map(({ id }) => id),
  );
  const gatewayIds = assignedUserIds.filter((id) => !id.startsWith(ACCOUNT_ID_PREFIX));
  const errors = [
    ...builtInNames(
      'body',
      Object.fromEntries(assignedUserIds.map((id, i) => [`/assignedUserIds/${i}`, id])),
    ),
    ...assignedUserIds.flatMap((id, i) =>
      activeIds.has(id) || gatewayIds.includes(id)
        ? []
        : [
            bodyError(
              `/assignedUserIds/${i}`,
              'not_found',
              `there is no active user with id ${id}`,
            ),
          ],
    ),
    ...assignedRoleIds.flatMap((id, i) =>
      roles.has(id)
        ? []
        : [bodyError(`/assignedRoleIds/${i}`, 'not_found', `there is no role with id ${id}`)],
    ),
  ];
  if (errors.length > 0 || assignedRoleIds.length > 0) return errors;
  const namesFor = await knownNamesOf(
    db,
    assignedUserIds.map((actorId) => ({ actorId, tenantId })),
  );
  const otherApprovers = [
    ...users.filter(({ holds }) => holds).map(({ id }) => id),
    ...gatewayIds,
  ].filter(
    (actorId) => !isSamePerson(requester.names, namesMeaning(namesFor({ actorId, tenantId }))),
  );
  if (otherApprovers.length >= requiredApprovals) return [];
  return [
    bodyError(
      '/assignedUserIds',
      'too_few_approvers',
      `must include users for ${counted(requiredApprovals, 'approval')}: only ${otherApprovers.length} of them, without you, may approve at the scope of the request (workflow:approve)`,
    ),
  ];
}

/** Checks that the times of a request are in the future and at most a year ahead. */
export function checkTimes({ expiresAt, executeAt }: ApprovalRequest, now: Date): FieldError[] {
  return Object.entries({ expiresAt, executeAt }).flatMap(([field, at]) => {
    if (!at) return [];
    if (at <= now) return [bodyError(`/${field}`, 'in_the_past', 'must be in the future')];
    return at.getTime() > now.getTime() + MAX_AHEAD_MS
      ? [bodyError(`/${field}`, 'too_far_ahead', 'must be within a year')]
      : [];
  });
}
