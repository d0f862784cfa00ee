import { labelOfField } from '../../../parts/format.ts';

/** Verbs with a column of their own; others are together in the last column. */
export const COMMON_VERBS = ['read', 'write'] as const;

const AREA_LABELS: Readonly<Record<string, string>> = {
  rbac: 'Roles and grants',
  auth: 'Identity providers',
  user: 'Users and service accounts',
  backup: 'Backups',
  schedule: 'Schedules',
  job: 'Jobs',
  jobtype: 'Job types and runners',
  workflow: 'Approval requests',
  event: 'Events',
  webhook: 'Webhooks',
  inventory: 'Inventory',
  audit: 'Audit log',
  hold: 'Legal holds',
  metrics: 'Metrics',
  secret: 'Secrets',
};

export type AreaRow<P extends string> = {
  area: string;
  label: string;
  /** The permissions with the common verbs; undefined where the area has none. */
  common: readonly (P | undefined)[];
  others: readonly P[];
};

export const areaOf = (permission: string): string => permission.split(':', 1)[0] ?? '';
export const verbOf = (permission: string): string =>
  permission.slice(areaOf(permission).length + 1);

export const areaLabel = (area: string): string => AREA_LABELS[area] ?? labelOfField(area);

/** The permissions by area and verb, in the order in which the service has them. */
export function matrixOf<P extends string>(permissions: readonly P[]): AreaRow<P>[] {
  const areas = [...new Set(permissions.map(areaOf))];
  return areas.map((area) => {
    const own = permissions.filter((permission) => areaOf(permission) === area);
    return {
      area,
      label: areaLabel(area),
      common: COMMON_VERBS.map((verb) => own.find((permission) => verbOf(permission) === verb)),
      others: own.filter((permission) => !COMMON_VERBS.some((verb) => verbOf(permission) === verb)),
    };
  });
}

/** The roles that differ in something, by what: a permission, or a pattern of job types. */
export const differ = <R>(roles: readonly R[], has: (role: R) => boolean): boolean =>
  new Set(roles.map(has)).size > 1;
