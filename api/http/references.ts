import type { TSchema } from 'typebox';
import {
  labelKindOf,
  labelKindOfId,
  type LabelKind,
  type NamedIds,
} from '../../domain/shared/labels.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';

/**
 * Keywords of response schemas that say what an id is of: `x-reference` a record of a kind,
 * `x-person` an account (`actor`: it did what the record says; `account`: the record mentions it),
 * and `x-subject`, of an object, a record or account whose type the named property has.
 * `x-any-id` is text that may be the id of any record or account.
 * `x-field-change` is an object with the values `before` and `after` of the field `field`.
 */
type Keywords = {
  'x-reference'?: LabelKind;
  'x-person'?: 'actor' | 'account';
  'x-subject'?: string;
  'x-any-id'?: true;
  'x-field-change'?: true;
};

type Schema = Keywords & {
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
};

type Collected = {
  records: Map<LabelKind, Set<string>>;
  actors: Set<string>;
  accounts: Set<string>;
};
type Collect = (value: unknown, found: Collected) => void;

function addRecord(kind: LabelKind, id: string, { records }: Collected): void {
  const ids = records.get(kind) ?? new Set();
  records.set(kind, ids.add(id));
}

const collectReference =
  (kind: LabelKind): Collect =>
  (value, found) => {
    if (typeof value === 'string') addRecord(kind, value, found);
  };

const collectPerson =
  (role: 'actor' | 'account'): Collect =>
  (value, { actors, accounts }) => {
    if (typeof value === 'string') (role === 'actor' ? actors : accounts).add(value);
  };

const collectAnyId: Collect = (value, found) => {
  if (typeof value !== 'string') return;
  const kind = labelKindOfId(value);
  if (kind) addRecord(kind, value, found);
  else if (value.startsWith('usr_')) found.accounts.add(value);
};

const collectSubject =
  (typeProperty: string): Collect =>
  (value, found) => {
    if (!isJsonObject(value)) return;
    const { [typeProperty]: type, id } = value;
    if (typeof type !== 'string' || typeof id !== 'string') return;
    const kind = labelKindOf(type);
    if (kind) addRecord(kind, id, found);
    else if (type === 'user') found.accounts.add(id);
  };

/** The collectors of the properties of an object; only of those that have ids. */
function collectorsOf(schema: Schema, changed: Schema | undefined): Map<string, Collect> {
  const entries = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const collect = collectorOf(property, changed);
    return collect ? [[name, collect] as const] : [];
  });
  return new Map(entries);
}

function collectChange(changed: Schema): Collect {
  const byField = collectorsOf(changed, undefined);
  return (value, found) => {
    if (!isJsonObject(value)) return;
    const collect = byField.get(String(value.field));
    collect?.(value.before, found);
    collect?.(value.after, found);
  };
}

function collectProperties(schema: Schema, changed: Schema | undefined): Collect[] {
  const byName = collectorsOf(schema, changed);
  const values = Object.values(schema.patternProperties ?? {}).flatMap(
    (each) => collectorOf(each, changed) ?? [],
  );
  const named: Collect = (value, found) => {
    if (isJsonObject(value)) for (const [name, collect] of byName) collect(value[name], found);
  };
  const all: Collect = (value, found) => {
    if (isJsonObject(value))
      for (const each of Object.values(value)) for (const collect of values) collect(each, found);
  };
  return [...(byName.size > 0 ? [named] : []), ...(values.length > 0 ? [all] : [])];
}

function collectItems(items: Schema, changed: Schema | undefined): Collect[] {
  const collect = collectorOf(items, changed);
  if (!collect) return [];
  return [
    (value, found) => {
      if (Array.isArray(value)) for (const each of value) collect(each, found);
    },
  ];
}

/** Collects the ids in values of a schema; undefined if it has none. */
function collectorOf(schema: Schema, changed: Schema | undefined): Collect | undefined {
  const { 'x-reference': kind, 'x-person': role, 'x-subject': typeProperty } = schema;
  const parts: Collect[] = [
    ...(kind === undefined ? [] : [collectReference(kind)]),
    ...(role === undefined ? [] : [collectPerson(role)]),
    ...(typeProperty === undefined ? [] : [collectSubject(typeProperty)]),
    ...(schema['x-any-id'] ? [collectAnyId] : []),
    ...(schema['x-field-change'] && changed ? [collectChange(changed)] : []),
    ...collectProperties(schema, changed),
    ...(schema.items ? collectItems(schema.items, changed) : []),
    ...(schema.anyOf ?? []).flatMap((each) => collectorOf(each, changed) ?? []),
  ];
  const [first, second] = parts;
  if (!first || !second) return first;
  return (value, found) => {
    for (const collect of parts) collect(value, found);
  };
}

/**
 * Compiles a function that collects the ids that a response names, by the keywords of its schema.
 * `changed` is the schema of the record whose changes the response lists.
 */
export function compileReferences(
  schema: TSchema,
  changed: TSchema | undefined,
): (body: unknown) => NamedIds {
  const collect = collectorOf(schema, changed);
  return (body) => {
    const found: Collected = { records: new Map(), actors: new Set(), accounts: new Set() };
    collect?.(body, found);
    return found;
  };
}
