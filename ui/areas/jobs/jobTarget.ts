import type { Where } from '../../parts/where.ts';
import type { TargetKind } from '../../parts/records/target.ts';

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
  return access === 'granted'
    ? `This needs a role that names the type ${name}.`
    : 'You may not create such jobs here.';
}
