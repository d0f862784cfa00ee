import type { Permission } from '../access/permissions.ts';
import type { Rights } from '../access/scope.ts';

/** What a user may have in one tenant, and what a tenant may share. */
export const MAX_VIEWS = 200;
export const MAX_SHARED_VIEWS = 500;
/** The search parameters of one view: their number, and the number of bytes as JSON. */
export const MAX_PARAMETERS = 60;
export const MAX_SEARCH_BYTES = 8_192;

/** A named view of a list of the console. */
export type ViewData = {
  id: string;
  tenantId: string;
  /** The path of the page of the list. */
  list: string;
  name: string;
  /** Filters, order and columns: the search parameters of the page. */
  search: Readonly<Record<string, string>>;
  /** Readers of the list in the tenant see it. Otherwise only its owner does. */
  shared: boolean;
  /** Identifies the owner; see `authorKeyOf`. */
  owner: string;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

type ListRights = {
  /** Each of these lets a user see the list, and views of it. */
  read: readonly Permission[];
  /** Lets a user share views of the list, and change shared ones. */
  share: Permission;
};

const POOLS: ListRights = {
  read: ['job:read', 'jobtype:read', 'jobtype:write'],
  share: 'jobtype:write',
};
const WEBHOOKS: ListRights = { read: ['webhook:read'], share: 'webhook:write' };

/** The lists of the console, by the first part of the path of their pages. */
const AREAS: Readonly<Record<string, ListRights>> = {
  inventory: { read: ['inventory:read'], share: 'inventory:write' },
  approvals: {
    read: ['workflow:read', 'workflow:write', 'workflow:approve'],
    share: 'workflow:write',
  },
  jobs: { read: ['job:read'], share: 'job:write' },
  'job-types': POOLS,
  runners: POOLS,
  secrets: { read: ['secret:read'], share: 'secret:write' },
  schedules: { read: ['schedule:read'], share: 'schedule:write' },
  webhooks: WEBHOOKS,
  deliveries: WEBHOOKS,
  // Nobody writes events or entries: who may subscribe, and who may read the log of a whole tenant.
  events: { read: ['event:read'], share: 'webhook:write' },
  audit: { read: ['audit:read'], share: 'audit:read' },
  backups: { read: ['backup:read'], share: 'backup:write' },
  access: { read: ['rbac:read', 'rbac:write', 'user:read', 'auth:read'], share: 'rbac:write' },
};

export const VIEW_AREAS: readonly string[] = Object.keys(AREAS);

/** The path of a page of a list: its area and perhaps further parts. */
export const LIST_PATTERN = `^/(?:${VIEW_AREAS.join('|')})(?:/[a-z][a-z-]{0,40}){0,3}$`;

const areaOf = (list: string): string => list.split('/', 2)[1] ?? '';

/** The permission that sharing views of a list needs. */
export function sharePermissionOf(list: string): Permission {
  const rights = AREAS[areaOf(list)];
  if (rights === undefined) throw new Error(`There is no list ${list}`);
  return rights.share;
}

/** The areas whose lists a user may see in a tenant, or in a part of it. */
export const readableAreas = ({ grants }: Rights, tenantId: string): string[] =>
  VIEW_AREAS.filter((area) =>
    grants.some(
      ({ role, level, targetId, owner }) =>
        (level === 'platform' ||
          (level === 'tenant' && targetId === tenantId) ||
          owner?.tenantId === tenantId) &&
        AREAS[area]?.read.some((permission) => role.permissions.has(permission)) === true,
    ),
  );
