import { whereText } from '../../../app/account/tokenText.ts';
import { labelOf, personName, type Names } from '../../../parts/names.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Grant = {
  roleId: string;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
} & ({ userId: string } | { providerId: string; externalGroup: string });

/** Who a grant is for, in words. */
export function granteeText(grant: Grant, names?: Names): string {
  if ('userId' in grant) return personName(names, grant.userId);
  const provider = labelOf(names, grant.providerId, 'providers') ?? grant.providerId;
  return `the members of the group ${grant.externalGroup} of ${provider}`;
}

export const roleText = ({ roleId }: Pick<Grant, 'roleId'>, names?: Names): string =>
  labelOf(names, roleId, 'roles') ?? roleId;

/** A grant as a sentence without its end: `Ada has the role Operator at tenant red`. */
export function grantText(grant: Grant, names?: Names): string {
  const where = whereText(grant, names);
  const verb = 'userId' in grant ? 'has' : 'have';
  const at = where === 'everywhere' ? where : `at ${where}`;
  return `${granteeText(grant, names)} ${verb} the role ${roleText(grant, names)} ${at}`;
}
