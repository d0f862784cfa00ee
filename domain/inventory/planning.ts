import type { ResourceName } from './names.ts';
import type { Resource, Row } from './resource.ts';
import type { FieldChange } from './difference.ts';
import type { Place } from '../access/scope.ts';
import type { Space } from './prefixTree.ts';
import type { World } from './planSnapshot.ts';

export const OPERATIONS = ['create', 'update', 'delete'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** A change that somebody asks for, as it came in. */
export type Mutation = { resource: string; operation: string; record: unknown };

/** A field that is wrong whatever else there is. `pointer` is a JSON Pointer into the record. */
export type PlanError = { pointer: string; code: string; message: string };

/** What stands against the change; `resource` and `id` name it where the caller may see it. */
export type PlanConflict = {
  pointer: string | null;
  code: string;
  message: string;
  resource: string | null;
  id: string | null;
};

export type PlanWarning = { pointer: string | null; code: string; message: string };

export const EFFECT_REASONS = ['requested', 'reparented', 'freed', 'cascade'] as const;

/** A record that would change, and how. */
export type Effect = {
  action: Operation;
  resource: ResourceName;
  id: string;
  label: string;
  reason: (typeof EFFECT_REASONS)[number];
  changes: FieldChange[];
};

/** What would come of a mutation. It is valid when there are neither errors nor conflicts. */
export type Planned = {
  resource: string;
  operation: string;
  /** The record in its canonical form, with defaults; as it came where it cannot be read. */
  candidateRecord: object;
  errors: PlanError[];
  conflicts: PlanConflict[];
  warnings: PlanWarning[];
  effects: Effect[];
  /** The record that it is about; null where there is none. */
  subject: { resource: ResourceName; id: string; before: Row | null; after: Row | null } | null;
  /** Records that go or are freed with it: whoever asks must be allowed to change them, too. */
  companions: { resource: ResourceName; row: Row }[];
};

export const isValid = ({ errors, conflicts }: Pick<Planned, 'errors' | 'conflicts'>): boolean =>
  errors.length === 0 && conflicts.length === 0;

/** Who asks, as far as a plan depends on it. */
export type Viewer = {
  /** Where new records stand. */
  tenantId: string;
  /** True when the caller may read the record. */
  sees(resource: Resource, row: Row): boolean;
  /** True when the caller may give records to a tenant. */
  seesTenant(id: string): boolean;
  /** True when a right at this very tenant says that it is there. */
  knowsTenant(id: string): boolean;
  /** The id that a new record gets; the same each time for the same request. */
  newId(resource: Resource, record: object): string;
  /** True when the caller may write at a place; not asked where nothing is written. */
  mayWrite?(place: Place): boolean;
  /** What is wrong with the fields of a request by their schema. */
  check(resource: Resource, operation: 'create' | 'update', record: object): PlanError[];
};

/** A mutation while it is being planned, as rules see it. */
export type Draft = {
  world: World;
  space: Space;
  resource: Resource;
  operation: Operation;
  before: Row | null;
  /** What the record will be; rules fill in derived fields. Of a delete, what it was. */
  after: Record<string, unknown> & Row;
  /** True when the request gives this field a value. */
  given(field: string): boolean;
  /** True when one of the fields will have another value than before. */
  changes(...fields: string[]): boolean;
  /** True when nothing is wrong with these fields. */
  sound(...fields: string[]): boolean;
  error(field: string, code: string, message: string): void;
  conflict(
    code: string,
    message: string,
    other?: { resource: string; row: Row } | null,
    field?: string,
  ): void;
  /** What is said of another record is said to whoever may read it. */
  warn(
    code: string,
    message: string,
    field?: string,
    about?: { resource: ResourceName; row: Row },
  ): void;
  /** Another record that changes with this one. */
  also(resource: ResourceName, row: Row, change: object, reason: Effect['reason']): void;
  /** Runs when the mutation is valid. */
  accepted(then: () => void): void;
};

export type Rules = { write?(draft: Draft): void; remove?(draft: Draft): void };

/** Most records that one mutation may change besides its own. */
export const MAX_EFFECTS = 10_000;
