import type { Where } from '../where.ts';
import type { TargetKind } from './target.ts';

type TargetRecord = { id: string; tenantId: string | null; siteId?: string | null | undefined };

/** Where a job about a record is: rights at the record are enough. */
export const whereOfTarget = (kind: TargetKind, { id, tenantId, siteId }: TargetRecord): Where => ({
  tenantId: tenantId ?? undefined,
  ...(kind === 'site' ? { siteId: id } : { siteId, deviceId: id }),
});

type Type = {
  name: string;
  state: 'waiting' | 'accepted' | 'disabled';
  mayRun: boolean;
  access: 'open' | 'granted';
  permission: string | null;
};

const namedBy = ({ name }: Pick<Type, 'name'>): string =>
  `This needs a role that names the type ${name}.`;

/** Why the user cannot create jobs of a type; undefined if that is possible. */
export function whyNotRun(
  { name, state, mayRun, access, permission }: Type,
  whyNot: (permission: string) => string | undefined,
): string | undefined {
  if (state === 'waiting') return 'The type waits to be accepted.';
  if (state === 'disabled') return 'The type is disabled.';
  if (mayRun) return undefined;
  const missing = ['job:write', ...(permission === null ? [] : [permission])];
  const lacking = missing.map(whyNot).find((reason) => reason !== undefined);
  if (lacking !== undefined) return lacking;
  return access === 'granted' ? namedBy({ name }) : 'You may not create such jobs here.';
}

type WhyNot = (permission: string) => string | undefined;

/** What the service says of a type is for the tenant of the session. */
export const inTenant = <T extends Type>(type: T, isOfSession: boolean): T =>
  isOfSession ? type : { ...type, mayRun: true };

const reasonOf = (permissions: readonly string[], whyNot: WhyNot): string | undefined =>
  permissions.map(whyNot).find((reason) => reason !== undefined);

const ownOf = ({ permission }: Type): string[] => (permission === null ? [] : [permission]);

/** Why the user cannot create a job of a type there; undefined if that is possible. */
export const whyNotCreate = (type: Type, whyNotThere: WhyNot): string | undefined =>
  whyNotRun(type, whyNotThere) ?? reasonOf(['job:write', ...ownOf(type)], whyNotThere);

/**
 * Why the user cannot decide when the jobs of others run, as those of a schedule, which have the rights of its owner;
 * undefined if that is possible.
 */
export function whyNotStart(type: Type, whyNotThere: WhyNot): string | undefined {
  // A role that names a type counts where jobs may be created.
  const needed = type.access === 'granted' ? ['job:write', ...ownOf(type)] : ownOf(type);
  const lacking = reasonOf(needed, whyNotThere);
  if (lacking !== undefined || type.access === 'open' || type.mayRun) return lacking;
  return namedBy(type);
}
