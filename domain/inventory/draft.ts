import { differences, isSame } from './difference.ts';
import {
  MAX_EFFECTS,
  type Draft,
  type Effect,
  type Operation,
  type Planned,
  type Viewer,
} from './planning.ts';
import type { ResourceName } from './names.ts';
import type { Resource, Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import type { Space } from './prefixTree.ts';
import { labelOf } from './standing.ts';
import type { World } from './planSnapshot.ts';

type Companion = {
  resource: ResourceName;
  id: string;
  before: Row;
  after: Row | null;
  reason: Effect['reason'];
};

/** Most findings of one kind that a plan lists. */
const MAX_FINDINGS = 100;

/** A draft with what rules say of it, and the changes that come with it. */
export type OpenDraft = Draft & {
  planned: Planned;
  /** The fields of the request that can be read. */
  request: Readonly<Record<string, unknown>>;
  /** Another record that goes with this one. */
  alsoRemove(resource: ResourceName, row: Row, reason: Effect['reason']): void;
  /** True when the record goes with this one. */
  isGoing(resource: ResourceName, id: string): boolean;
  /** Says in the plan what goes along. */
  settle(): void;
  /** Puts everything into the world. */
  accept(): void;
};

const effectOf = (
  action: Operation,
  {
    resource,
    id,
    before,
    after,
    reason,
  }: {
    resource: ResourceName;
    id: string;
    before: Row | null;
    after: Row | null;
    reason: Effect['reason'];
  },
): Effect => ({
  action,
  resource,
  id,
  reason,
  label: labelOf(RESOURCES[resource], after ?? before ?? { id, version: 0 }),
  changes: before && after ? differences(before, after) : [],
});

type Opening = {
  world: World;
  space: Space;
  viewer: Viewer;
  resource: Resource;
  operation: Operation;
  before: Row | null;
  after: Row;
  request: Readonly<Record<string, unknown>>;
};

export function openDraft({
  world,
  space,
  viewer,
  resource,
  operation,
  before,
  after,
  request,
}: Opening): OpenDraft {
  const companions = new Map<string, Companion>();
  const thens: (() => void)[] = [];
  const wrong = new Set<string>();
  const planned: Planned = {
    companions: [],
    resource: resource.name,
    operation,
    candidateRecord: after,
    errors: [],
    conflicts: [],
    warnings: [],
    effects: [],
    subject: {
      resource: resource.name,
      id: after.id,
      before,
      after: operation === 'delete' ? null : after,
    },
  };

  function accompany(
    of: ResourceName,
    row: Row,
    change: object | null,
    reason: Effect['reason'],
  ): void {
    const key = `${of}/${row.id}`;
    const known = companions.get(key);
    const current = known?.after ?? row;
    companions.set(key, {
      resource: of,
      id: row.id,
      before: known?.before ?? row,
      after: change && { ...current, ...change },
      reason: known?.reason ?? reason,
    });
    if (companions.size === MAX_EFFECTS + 1) {
      planned.conflicts.push({
        pointer: null,
        code: 'too_many_effects',
        message: `would change more than ${MAX_EFFECTS} other records at once`,
        resource: null,
        id: null,
      });
    }
  }

  return {
    world,
    space,
    resource,
    operation,
    before,
    after,
    planned,
    request,
    given: (field) => Object.hasOwn(request, field),
    changes: (...fields) =>
      before === null || fields.some((field) => !isSame(before[field], after[field])),
    sound: (...fields) => fields.every((field) => !wrong.has(field)),
    error(field, code, message) {
      wrong.add(field.split('/')[0] ?? field);
      if (planned.errors.length < MAX_FINDINGS)
        planned.errors.push({ pointer: field === '' ? '' : `/${field}`, code, message });
    },
    conflict(code, message, other = null, field) {
      if (planned.conflicts.length >= MAX_FINDINGS) return;
      const declared = other
        ? (RESOURCES as Readonly<Record<string, Resource | undefined>>)[other.resource]
        : undefined;
      const seen = other !== null && (declared === undefined || viewer.sees(declared, other.row));
      planned.conflicts.push({
        pointer: field === undefined ? null : `/${field}`,
        code,
        message:
          other === null || seen ? message : 'a record that you may not read stands against it',
        resource: seen ? other.resource : null,
        id: seen ? other.row.id : null,
      });
    },
    warn(code, message, field, about) {
      if (about && !viewer.sees(RESOURCES[about.resource], about.row)) return;
      planned.warnings.push({ pointer: field === undefined ? null : `/${field}`, code, message });
    },
    also: accompany,
    alsoRemove: (of, row, reason) => accompany(of, row, null, reason),
    isGoing: (of, id) =>
      (of === resource.name && id === after.id && operation === 'delete') ||
      companions.get(`${of}/${id}`)?.after === null,
    accepted: (then) => void thens.push(then),
    settle() {
      // A prefix that gets another parent is the same to whoever has it.
      planned.companions = [...companions.values()]
        .filter(({ reason }) => reason !== 'reparented')
        .map(({ resource: of, before: row }) => ({ resource: of, row }));
    },
    accept() {
      // What changes nothing is no change: its version, its history and its readers stay as they are.
      if (
        before &&
        operation === 'update' &&
        companions.size === 0 &&
        differences(before, after).length === 0
      )
        return;
      if (operation === 'delete') world.remove(resource.name, after.id);
      else world.put(resource.name, after);
      planned.effects = [
        effectOf(operation, {
          resource: resource.name,
          id: after.id,
          before,
          after: operation === 'delete' ? null : after,
          reason: 'requested',
        }),
      ];
      for (const each of companions.values()) {
        if (each.after) world.put(each.resource, each.after);
        else world.remove(each.resource, each.id);
        // Whoever may not read a record is not told of it.
        if (viewer.sees(RESOURCES[each.resource], each.before))
          planned.effects.push(effectOf(each.after ? 'update' : 'delete', each));
      }
      for (const then of thens) then();
    },
  };
}
