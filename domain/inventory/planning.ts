import type { ResourceName } from './names.ts';
import type { INHERITED, InheritedScope, Resource, Row } from './resource.ts';
import type { FieldChange } from './difference.ts';
import type { Permission } from '../access/permissions.ts';
import type { ResourceScope } from '../access/scope.ts';
import type { PrefixTree } from './prefixTree.ts';
import type { Spans } from './spans.ts';
import type { PlanSnapshot } from './planSnapshot.ts';

export const OPERATIONS = ['create', 'update', 'delete'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** A requested change, as received: nothing of it has been checked. */
export type Mutation = {
  resource: string;
  operation: string;
  record: unknown;
  /** True for an update that creates the record if there is none with its id. */
  createsMissing?: boolean;
  /** Merged fields, such as `customFields`, which an update leaves without any value. */
  emptied?: readonly string[];
};

/**
 * An invalid field. It is invalid whatever other records exist. `pointer` is a JSON Pointer
 * (RFC 6901) into `pointsInto` of the plan: the record, if nothing else is wrong.
 */
export type PlanError = { pointer: string; code: string; message: string };

/**
 * A conflict with another record. `resource` and `id` name that record; both are null when the
 * caller may not read it.
 */
export type PlanConflict = {
  pointer: string | null;
  code: string;
  message: string;
  resource: string | null;
  id: string | null;
};

/** Something the caller may want to know; it does not prevent the change. */
export type PlanWarning = { pointer: string | null; code: string; message: string };

/**
 * Why a record changes: the mutation names it, its parent prefix changes, a reference to a deleted
 * record is set to null, or it is deleted or updated together with another record.
 */
export const EFFECT_REASONS = ['requested', 'reparented', 'reference_cleared', 'cascade'] as const;
export type EffectReason = (typeof EFFECT_REASONS)[number];

/** One record that a mutation would change, and the fields that change. */
export type Effect = {
  action: Operation;
  resource: ResourceName;
  id: string;
  label: string;
  reason: EffectReason;
  changes: FieldChange[];
};

/**
 * A site or a device whose role assignments and provider mappings do not follow it. Removing those
 * of the own tenant needs `rbac:write` in `scope`.
 */
export type Revocation = {
  resource: 'sites' | 'devices';
  id: string;
  scope: ResourceScope;
  isOwn: boolean;
};

/** The warning of a plan with revocations in the own tenant. */
export const GRANTS_REMOVED = 'grants_removed';

/** The plan of one mutation. It is valid when it has neither errors nor conflicts. */
export type Planned = {
  resource: string;
  operation: string;
  /** The record in canonical form with defaults; as received when it cannot be read. */
  candidateRecord: object;
  errors: PlanError[];
  conflicts: PlanConflict[];
  warnings: PlanWarning[];
  /** What the pointers lead into; the mutation, when it names no known resource, operation or record. */
  pointsInto: 'record' | 'mutation';
  effects: Effect[];
  /** True for a valid update without differences. */
  unchanged: boolean;
  /** The record that the mutation names; null when there is none. */
  subject: { resource: ResourceName; id: string; before: Row | null; after: Row | null } | null;
  /** Where the caller needs `inventory:write` for the record as it is. */
  presentScopes: ResourceScope[];
  /** Where the caller needs `inventory:write` for everything that a valid plan does. */
  requiredScopes: ResourceScope[];
  /** Sites and devices whose assignments and mappings are removed together with the change. */
  revoked: Revocation[];
  /**
   * Scopes where the caller may neither read nor write: those that the request names, and those of a record
   * that the caller may only know of. They are reported instead of what the plan found there.
   */
  denied: ResourceScope[];
};

/** The pointer from a mutation to what a pointer of its plan means. */
export const pointerInMutation = (
  { pointsInto }: Pick<Planned, 'pointsInto'>,
  pointer: string,
): string => (pointsInto === 'record' ? `/record${pointer}` : pointer);

/** True when a plan has neither errors nor conflicts. */
export const isValid = ({ errors, conflicts }: Pick<Planned, 'errors' | 'conflicts'>): boolean =>
  errors.length === 0 && conflicts.length === 0;

/** What is wrong with the fields of a request. `isCut` when further fields may be invalid. */
export type SchemaFindings = { errors: PlanError[]; isCut: boolean };

/** The caller, as far as a plan depends on it. */
export type Viewer = {
  /** The tenant that new records belong to by default. */
  tenantId: string;
  /**
   * True when the caller may read or write the record: writing needs no permission to read, and
   * responses to writers show what they wrote.
   */
  isInside(resource: Resource, row: Row): boolean;
  /** True also when the record is shared with a tenant that the caller may read. */
  canRead(resource: Resource, row: Row): boolean;
  /** True when the caller holds one of these permissions in a scope. */
  holds(permissions: readonly Permission[], scope: ResourceScope): boolean;
  /** True when the caller may assign records to a tenant. */
  canUseTenant(id: string): boolean;
  /** True when the caller has a grant at exactly this tenant, which proves that it exists. */
  hasGrantAtTenant(id: string): boolean;
  /** The id for a new record; the same id for the same request object. */
  newId(resource: Resource, record: object): string;
  /** True when the caller may write in a scope. */
  canWrite(scope: ResourceScope): boolean;
  /** True when the caller may read or write in a scope. */
  canSee(scope: ResourceScope): boolean;
  /** True when a missing permission is an error of its mutation; else it is checked elsewhere. */
  reportsPermissions: boolean;
  /**
   * True when what is valid is written even if the rest is not. Else the ids of records that the plan
   * creates must not be named: nothing will have them.
   */
  writesValid: boolean;
  /** False when nobody reads the warnings of the plan: it has none, and loads nothing for them. */
  warns: boolean;
  /** Validates the fields of a request against the schema of the resource. */
  checkSchema(resource: Resource, operation: 'create' | 'update', record: object): SchemaFindings;
};

/** What a plan is made from. */
export type PlanContext = {
  snapshot: PlanSnapshot;
  prefixTree: PrefixTree;
  spans: Spans;
  viewer: Viewer;
};

/**
 * A record that a conflict names. One outside the inventory has no row; it belongs to the record of
 * the mutation.
 */
export type OtherRecord = { resource: string; id?: string; row?: Row };

/** A mutation while it is planned, as the rules of its resource see it. */
export type Draft = {
  snapshot: PlanSnapshot;
  prefixTree: PrefixTree;
  spans: Spans;
  resource: Resource;
  operation: Operation;
  before: Row | null;
  /** The future record, in which rules set derived fields; for a delete, the present record. */
  after: Record<string, unknown> & { [INHERITED]?: readonly InheritedScope[] } & Row;
  /** True when the request has this field. */
  isProvided(field: string): boolean;
  /** True for a create, and when the value of one of the fields changes. */
  hasChanged(...fields: string[]): boolean;
  /** True when none of these fields has an error. */
  isValid(...fields: string[]): boolean;
  /** Adds an error. `field` is a path below the record, empty for the record as a whole. */
  error(field: string, code: string, message: string): void;
  /** Adds the error that the caller has no permission in a scope, which `field` names. */
  deny(field: string, scope: ResourceScope): void;
  /**
   * Requires `inventory:write` in a scope besides those of the records. Returns false, with the
   * error that `field` needs it and why, when the caller may not even read there.
   */
  requirePermission(field: string, scope: ResourceScope, why: string): boolean;
  /** Adds a conflict. The other record is named only when the caller may read it. */
  conflict(code: string, message: string, other?: OtherRecord | null, field?: string): void;
  /** False when nobody reads warnings: nothing is loaded for them. */
  warns: boolean;
  /** Adds a warning. A warning about another record is left out when the caller may not read it. */
  warn(
    code: string,
    message: string,
    field?: string,
    about?: { resource: ResourceName; row: Row },
  ): void;
  /** Updates another record together with this one. */
  cascadeUpdate(resource: ResourceName, row: Row, change: object, reason: EffectReason): void;
  /** Deletes another record together with this one. */
  cascadeDelete(resource: ResourceName, row: Row, reason: EffectReason): void;
  /** True when this mutation deletes the record. */
  isDeleted(resource: ResourceName, id: string): boolean;
  /** Removes the role assignments and provider mappings at a site or a device. */
  revokeGrants(resource: Revocation['resource'], row: Row): void;
  /** True when the request asks to detach everything that other tenants have on the record. */
  evicts: boolean;
  /**
   * True for a record of another tenant that the caller may not write, and with `evicts` for any of
   * another tenant. It does not hinder the owner of the record: it is detached, and needs no right.
   */
  yields(resource: ResourceName, row: Row): boolean;
  /** Registers a callback for the case that the mutation is valid. */
  onAccept(callback: () => void): void;
};

/** The rules of a resource: for creates and updates, and for deletes. */
export type Rules = { write?(draft: Draft): void; remove?(draft: Draft): void };

/** The number of other records that one mutation may change. */
export const MAX_EFFECTS = 10_000;
