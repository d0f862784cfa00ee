import { DAY_MS } from '../../../domain/shared/durations.ts';
import { fromLocalInput } from '../../parts/localInput.ts';

/** A scope in a request, by the narrowest id. */
type Scope = { tenantId: string } | { siteId: string } | { deviceId: string };
type StoredScope = { tenantId: string; siteId: string | null; deviceId: string | null };

/** What a form needs of a token. `P` are the names of permissions. */
type Token<P extends string> = {
  name: string;
  permissions: readonly P[] | null;
  readOnly: boolean;
  resourceScopes: readonly StoredScope[] | null;
  jobTypes: readonly string[] | null;
  allowedNetworks: readonly string[] | null;
  requestsPerMinute: number | null;
};

/** What is typed about a token. Lists that are null are no limit. */
export type TokenForm<P extends string = string> = {
  name: string;
  /** Days until it expires, `date` for that of `date`, or `keep` for the present one. */
  expiry: string;
  /** A day, as the browser has it, in the zone of the times that are shown. */
  date: string;
  permissions: readonly P[] | null;
  readOnly: boolean;
  /** Scopes as `tenants red`, `sites sit_…` or `devices dev_…`. */
  scopes: readonly string[] | null;
  jobTypes: readonly string[];
  networks: readonly string[];
  requestsPerMinute: number | null;
};

export const EXPIRIES: readonly { value: string; label: string }[] = [
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
  { value: 'date', label: 'On a day' },
];

export const EMPTY_FORM: TokenForm<never> = {
  name: '',
  expiry: '90',
  date: '',
  permissions: null,
  readOnly: false,
  scopes: null,
  jobTypes: [],
  networks: [],
  requestsPerMinute: null,
};

export function scopeValue({ tenantId, siteId, deviceId }: StoredScope): string {
  if (deviceId !== null) return `devices ${deviceId}`;
  return siteId === null ? `tenants ${tenantId}` : `sites ${siteId}`;
}

/** Kind and id of a scope in a form. */
export function scopeParts(value: string): [kind: string, id: string] {
  const space = value.indexOf(' ');
  return [value.slice(0, space), value.slice(space + 1)];
}

function scopeOf(value: string): Scope {
  const [kind, id] = scopeParts(value);
  if (kind === 'sites') return { siteId: id };
  return kind === 'devices' ? { deviceId: id } : { tenantId: id };
}

export const formOf = <P extends string>(token: Token<P>): TokenForm<P> => ({
  name: token.name,
  expiry: 'keep',
  date: '',
  permissions: token.permissions,
  readOnly: token.readOnly,
  scopes: token.resourceScopes?.map(scopeValue) ?? null,
  jobTypes: token.jobTypes ?? [],
  networks: token.allowedNetworks ?? [],
  requestsPerMinute: token.requestsPerMinute,
});

/**
 * When a token of the form expires; undefined if it keeps its time, or none is typed. `utc`: the day is
 * one in UTC, not one where the user is.
 */
function expiryOf({ expiry, date }: TokenForm, now: Date, utc: boolean): string | undefined {
  if (expiry === 'keep') return undefined;
  if (expiry !== 'date') return new Date(now.getTime() + Number(expiry) * DAY_MS).toISOString();
  return fromLocalInput(`${date}T23:59:59`, utc) ?? undefined;
}

const listOf = (values: readonly string[]): string[] | null =>
  values.length === 0 ? null : [...values];

const limitsOf = <P extends string>(form: TokenForm<P>) => ({
  name: form.name.trim(),
  // A choice of none must not become no limit: the service refuses it.
  permissions: form.permissions && [...form.permissions],
  readOnly: form.readOnly,
  resourceScopes: form.scopes?.map(scopeOf) ?? null,
  jobTypes: listOf(form.jobTypes),
  allowedNetworks: listOf(form.networks),
  requestsPerMinute: form.requestsPerMinute,
});

type Limits = ReturnType<typeof limitsOf>;

/** The request that creates the token. */
export function toRequest<P extends string>(form: TokenForm<P>, now: Date, utc: boolean) {
  const expiresAt = expiryOf(form, now, utc);
  return { ...limitsOf(form), ...(expiresAt !== undefined && { expiresAt }) };
}

/** What differs from the form as it started. A scope that is named again would count again. */
export function toChange<P extends string>(
  form: TokenForm<P>,
  started: TokenForm<P>,
  now: Date,
  utc: boolean,
) {
  const before = limitsOf(started);
  const after = limitsOf(form);
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof Limits]),
  );
  const expiresAt = expiryOf(form, now, utc);
  // Entries of the limits are limits.
  const change = Object.fromEntries(changed) as Partial<typeof after>;
  return { ...change, ...(expiresAt !== undefined && { expiresAt }) };
}

/** What is missing before a form can be sent. */
export function missingIn({ permissions, scopes, expiry, date }: TokenForm): string | undefined {
  if (permissions?.length === 0) return 'Choose at least one permission.';
  if (scopes?.length === 0) return 'Choose at least one tenant, site or device.';
  if (expiry === 'date' && date === '') return 'Choose the day on which it expires.';
  return undefined;
}
