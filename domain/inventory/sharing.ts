import { isEmpty, PLATFORM, type Scope } from '../access/scope.ts';
import { isReadable } from './ownership.ts';
import type { Resource, Row } from './resource.ts';

/** Shares a record with every tenant. */
const EVERY_TENANT = '*';

const sharesOf = ({ sharedWith }: Row): readonly string[] =>
  Array.isArray(sharedWith) ? (sharedWith as string[]) : [];

/** True when records of a tenant may refer to a record because its owner shares it. */
export const isSharedWith = (row: Row, tenantId: unknown): boolean =>
  sharesOf(row).some((id) => id === EVERY_TENANT || id === tenantId);

/** The shares of a record that a reader in `scope` may know: those of their own tenants. */
const knownShares = (scope: Scope, row: Row): string[] =>
  sharesOf(row).filter(
    (id) => id === EVERY_TENANT || (scope.kind === 'within' && scope.tenantIds.has(id)),
  );

/** The ids by which records are shared with the readers in a scope. */
export const sharesReadIn = (scope: Scope): string[] =>
  scope.kind === 'within' ? [...scope.tenantIds, EVERY_TENANT] : [];

/** True when a record is of the platform and holds for all tenants, so that all may read it. */
const isPublic = ({ isPlatformPublic }: Resource, { tenantId }: Row): boolean =>
  isPlatformPublic && tenantId === PLATFORM;

/** True when a record is inside a scope, or is shared with one of its tenants. */
export const isVisible = (scope: Scope, resource: Resource, row: Row): boolean =>
  isReadable(scope, resource, row) ||
  (resource.sharable && knownShares(scope, row).length > 0) ||
  (isPublic(resource, row) && !isEmpty(scope));

/** A record as its reader may see it: whom else it is shared with is for readers of its tenant. */
export const sharedView = (scope: Scope, resource: Resource, row: Row): Row =>
  !resource.sharable || isReadable(scope, resource, row)
    ? row
    : { ...row, sharedWith: knownShares(scope, row) };
