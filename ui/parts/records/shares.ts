import { TENANT_ID } from '../../../domain/access/tenantId.ts';
import type { Found } from '../list/search.ts';
import { EVERY_TENANT, EVERY_TENANT_LABEL } from '../names.ts';

const ALL: Found = { id: EVERY_TENANT, label: EVERY_TENANT_LABEL };

/** What a record is shared with, if it is no record that is searched: every tenant. */
export const shareOf = (id: string | undefined): Found | undefined =>
  id === EVERY_TENANT ? ALL : undefined;

/**
 * What a record can be shared with: every tenant, those that are found, and the one whose id is typed,
 * which the user perhaps may not read.
 */
export function shareOptions(typed: string, found: readonly Found[]): Found[] {
  const isAll =
    typed === EVERY_TENANT || EVERY_TENANT_LABEL.toLowerCase().includes(typed.toLowerCase());
  const isOther = new RegExp(TENANT_ID).test(typed) && found.every(({ id }) => id !== typed);
  return [
    ...(isAll ? [ALL] : []),
    ...found,
    ...(isOther ? [{ id: typed, label: typed, detail: 'the tenant with this id' }] : []),
  ];
}
