import { formatNumberOf } from '../../parts/format.ts';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { labelOf, type Names } from '../../parts/names.ts';
import { nounOf } from '../../../domain/shared/nouns.ts';

/** What texts need of a token. */
type Token = {
  status: string;
  permissions: readonly string[] | null;
  readOnly: boolean;
  resourceScopes: readonly Where[] | null;
  jobTypes: readonly string[] | null;
  allowedNetworks: readonly string[] | null;
  requestsPerMinute: number | null;
  expiresAt: string;
};
type Where = { tenantId: string; siteId: string | null; deviceId: string | null };

/** `token.expiring` comes as long before the expiry. */
export const WARNING_DAYS = 7;

const MAX_NAMED = 4;

/** The first of several texts, and how many there are besides. */
export const listText = (texts: readonly string[]): string =>
  texts.length <= MAX_NAMED
    ? texts.join(', ')
    : `${texts.slice(0, MAX_NAMED - 1).join(', ')} and ${texts.length - MAX_NAMED + 1} more`;

/** A tenant, site or device by its name: `everywhere`, `tenant red`, `site ams1 of red`. */
export function whereText({ tenantId, siteId, deviceId }: Where, names?: Names): string {
  const nameOf = (kind: string, id: string) => labelOf(names, id, kind) ?? id;
  const tenant = nameOf('tenants', tenantId);
  if (deviceId !== null) return `device ${nameOf('devices', deviceId)} of ${tenant}`;
  if (siteId !== null) return `site ${nameOf('sites', siteId)} of ${tenant}`;
  return tenantId === 'platform' ? 'everywhere' : `tenant ${tenant}`;
}

/** What limits a token, in words. A token without limits may do what its owner may do. */
export function limitTexts(token: Token, names?: Names, owner: 'you' | 'it' = 'you'): string[] {
  const { permissions, resourceScopes, jobTypes, allowedNetworks, requestsPerMinute } = token;
  return [
    permissions === null
      ? `All that ${owner === 'you' ? 'you' : 'the account'} may do`
      : listText(permissions),
    token.readOnly && 'read only',
    resourceScopes && `at ${listText(resourceScopes.map((scope) => whereText(scope, names)))}`,
    jobTypes && `jobs ${listText(jobTypes)}`,
    allowedNetworks && `from ${listText(allowedNetworks)}`,
    requestsPerMinute !== null && `${formatNumberOf(requestsPerMinute, 'request')} a minute`,
  ].filter((text) => typeof text === 'string');
}

/** True if a token that is used expires soon. */
export const expiresSoon = ({ status, expiresAt }: Token, now: number): boolean =>
  status === 'active' && Date.parse(expiresAt) - now <= WARNING_DAYS * DAY_MS;

/** A first request with a token, which a shell has in the variable TOKEN. */
export const exampleOf = (origin: string): string =>
  `curl -H "Authorization: Bearer $TOKEN" ${origin}/api/auth/token`;

type Scope = {
  everywhere: boolean;
  complete: boolean;
  tenantIds: readonly string[];
  siteIds: readonly string[];
  deviceIds: readonly string[];
};
type Summary = { permissions: Readonly<Record<string, Scope>> };

/** The permissions that the user has anywhere, and where. */
export function heldPermissions(
  { permissions }: Summary,
  names?: Names,
): { permission: string; where: string }[] {
  return Object.entries(permissions).flatMap(([permission, scope]) => {
    const { everywhere, complete, tenantIds, siteIds, deviceIds } = scope;
    if (everywhere) return [{ permission, where: 'everywhere' }];
    const nameOf = (kind: string) => (id: string) => labelOf(names, id, kind) ?? id;
    const parts = [
      ['tenants', tenantIds],
      ['sites', siteIds],
      ['devices', deviceIds],
    ] as const;
    const texts = parts
      .filter(([, ids]) => ids.length > 0)
      .map(([kind, ids]) => `${nounOf(kind, ids.length)} ${listText(ids.map(nameOf(kind)))}`);
    if (texts.length === 0) return [];
    return [{ permission, where: `${texts.join('; ')}${complete ? '' : ' and more'}` }];
  });
}
