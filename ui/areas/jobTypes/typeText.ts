import { ownValue } from '../../parts/ownValue.ts';

/** As the table of differences takes it. */
type DiffRow = { field: string; label: string | undefined; before: unknown; after: unknown };

type Definition = Readonly<Record<string, unknown>>;

type Version = { digest: string; accepted: boolean; definition: Definition };

type Type = {
  state: 'waiting' | 'accepted' | 'disabled';
  digest: string | null;
  acceptedAt: string | null;
  versions: readonly Version[];
};

/** The beginning of a digest, as people compare it. */
export const shortDigest = (digest: string): string => digest.slice(0, 12);

/** The version that acceptance would be for: the newest one, unless it is accepted already. */
export function candidateOf<V extends Version>({
  state,
  versions,
}: Omit<Type, 'versions'> & { versions: readonly V[] }): V | undefined {
  const [newest] = versions;
  return state === 'accepted' && newest?.accepted === true ? undefined : newest;
}

/** The definition that was accepted last; undefined if none was, or if it is not among the versions. */
export const acceptedDefinition = ({
  acceptedAt,
  digest,
  versions,
}: Type): Definition | undefined =>
  acceptedAt === null
    ? undefined
    : versions.find((version) => version.digest === digest)?.definition;

const FIELDS: Readonly<Record<string, string>> = {
  summary: 'Summary',
  pool: 'Pool',
  targets: 'Is about',
  access: 'Access',
  payload: 'Payload schema',
  result: 'Result schema',
  secrets: 'Secrets',
  timeoutSeconds: 'Time limit (s)',
  lostAfterSeconds: 'Lost after (s)',
  retry: 'Retries',
  concurrency: 'Concurrent jobs',
};

/** What differs between two definitions, field by field. */
export const definitionRows = (before: Definition | undefined, after: Definition): DiffRow[] =>
  [...new Set([...Object.keys(FIELDS), ...Object.keys({ ...before, ...after })])]
    .filter((field) => field !== 'name')
    .map((field) => ({
      field,
      label: FIELDS[field],
      before: before?.[field],
      after: after[field],
    }));

type Runnable = { createdOnlyBy: string | null; access: 'open' | 'granted' };

const ACCESS_TEXTS: Readonly<Record<Runnable['access'], string>> = {
  granted: 'Roles that name it',
  open: 'All who may create jobs',
};

/** Who may run jobs of a type, in words. */
export const whoMayRun = ({ createdOnlyBy, access }: Runnable): string =>
  createdOnlyBy === null ? (ownValue(ACCESS_TEXTS, access) ?? access) : `Only ${createdOnlyBy}`;

const ORIGINS = { runner: 'Runners', holdfast: 'Holdfast' } as const;

/** Where the code of a type comes from. */
export const originText = (origin: keyof typeof ORIGINS): string =>
  ownValue(ORIGINS, origin) ?? origin;

const PER = { type: 'the type', tenant: 'a tenant', target: 'a target' } as const;
const WHEN_FULL = { wait: 'wait', refuse: 'fail' } as const;

type Concurrency = { limit: number; per: keyof typeof PER; whenFull: keyof typeof WHEN_FULL };

/** How many jobs of a type run at a time. */
export const concurrencyText = ({ limit, per, whenFull }: Concurrency): string =>
  `${limit} of ${ownValue(PER, per) ?? per}; further ones ${ownValue(WHEN_FULL, whenFull) ?? whenFull}`;

/** Why no version can be accepted; undefined if one can. */
export function whyNotAccept(type: Type): string | undefined {
  if (type.versions.length === 0) return 'No runner has announced a version that you can read.';
  return candidateOf(type) ? undefined : 'The newest version is accepted.';
}

/** Why a type cannot be disabled; undefined if it can. */
export function whyNotDisable({ state }: Pick<Type, 'state'>): string | undefined {
  if (state === 'waiting') return 'The type was never accepted.';
  return state === 'disabled' ? 'The type is disabled.' : undefined;
}

/** The path of the page of a type. */
export const typePath = (name: string): string => `/job-types/${encodeURIComponent(name)}`;

type Role = { name: string; permissions: readonly string[]; jobTypes: readonly string[] };

const covers = (pattern: string, name: string): boolean =>
  pattern === '*' ||
  pattern === name ||
  (pattern.endsWith('.*') && name.startsWith(pattern.slice(0, -1)));

/** The names of the roles with which jobs of a type can be created, where they are assigned. */
export const rolesThatRun = (
  roles: readonly Role[],
  { name, access, permission }: { name: string; access: string; permission: string | null },
): string[] =>
  roles
    .filter(({ permissions }) => permissions.includes('job:write'))
    .filter(({ permissions }) => permission === null || permissions.includes(permission))
    .filter(
      ({ jobTypes }) => access === 'open' || jobTypes.some((pattern) => covers(pattern, name)),
    )
    .map((role) => role.name);

/** The secrets that a definition asks for: the name that its code reads, and that of the secret. */
export function secretsIn(definition: Definition | undefined): { as: string; secret: string }[] {
  const { secrets } = definition ?? {};
  if (typeof secrets !== 'object' || secrets === null) return [];
  return Object.entries(secrets).map(([as, wanted]) => ({
    as,
    secret: String((wanted as { secret?: unknown }).secret),
  }));
}
