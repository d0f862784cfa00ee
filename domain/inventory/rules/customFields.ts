import { escapePointer } from '../../shared/jsonPointer.ts';
import { PLATFORM } from '../../access/scope.ts';
import { isSame } from '../difference.ts';
import type { Draft, Rules } from '../planning.ts';
import type { Row } from '../resource.ts';
import { MAX_CUSTOM_FIELDS_BYTES, MAX_CUSTOM_TEXT } from '../fields.ts';
import type { ResourceName } from '../names.ts';
import { asReferrer } from '../ownership.ts';
import { isPlainId } from '../prefetch.ts';
import { collectMissing, customFieldGroup, tagGroup, type PlanSnapshot } from '../planSnapshot.ts';
import { RESOURCES } from '../resources/index.ts';
import type { CUSTOM_TYPES } from '../resources/catalogues.ts';
import { nounOf } from '../../shared/nouns.ts';

const DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;

const isText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= MAX_CUSTOM_TEXT &&
  !value.includes('\0') &&
  value.isWellFormed();

/** `kept`: choices of the record, which need not be offered any more. */
type ValueCheck = (
  value: unknown,
  definition: Row,
  kept?: readonly unknown[],
) => string | undefined;

const requirement =
  (message: string, accepts: (value: unknown) => boolean): ValueCheck =>
  (value) =>
    accepts(value) ? undefined : message;

/** Checks a number against the bounds of a definition. */
const checkNumber =
  (message: string, isNumber: (value: unknown) => boolean): ValueCheck =>
  (value, { minimum, maximum }) => {
    if (typeof value !== 'number' || !isNumber(value)) return message;
    if (typeof minimum === 'number' && value < minimum) return `must be at least ${minimum}`;
    if (typeof maximum === 'number' && value > maximum) return `must be at most ${maximum}`;
    return undefined;
  };

const isDate = (value: unknown): boolean =>
  isText(value) &&
  DATE.test(value) &&
  !Number.isNaN(Date.parse(value)) &&
  new Date(value).toISOString().startsWith(value);

const isWebUrl = (value: unknown): boolean =>
  isText(value) && ['http:', 'https:'].includes(URL.parse(value)?.protocol ?? '');

const choicesOf = ({ choices }: Row) => choices as readonly unknown[];

const isSubset = (value: unknown, choices: readonly unknown[]): boolean =>
  Array.isArray(value) &&
  new Set(value).size === value.length &&
  value.every((each) => choices.includes(each));

/** The check of each type of custom field. It returns a message when the value is invalid. */
const VALUE_CHECKS: Readonly<Record<(typeof CUSTOM_TYPES)[number], ValueCheck>> = {
  text: requirement(`must be a text of at most ${MAX_CUSTOM_TEXT} characters`, isText),
  integer: checkNumber('must be an integer', Number.isSafeInteger),
  number: checkNumber('must be a number', Number.isFinite),
  boolean: requirement('must be true or false', (value) => typeof value === 'boolean'),
  date: requirement('must be a date such as 2026-11-21', isDate),
  url: requirement('must be an http or https URL', isWebUrl),
  choice: (value, definition) =>
    choicesOf(definition).includes(value)
      ? undefined
      : `must be one of ${choicesOf(definition).join(', ')}`,
  choices: (value, definition, kept = []) =>
    isSubset(value, [...choicesOf(definition), ...kept])
      ? undefined
      : `must be a list of ${choicesOf(definition).join(', ')}, each once`,
};

/** Why a value does not match its definition; undefined when it does. */
const typeError: ValueCheck = (value, definition, kept) =>
  VALUE_CHECKS[definition.type as (typeof CUSTOM_TYPES)[number]](value, definition, kept);

/** The tenant whose definitions apply to a record, besides those of the platform. */
const tenantOf = ({ resource, after }: Draft): unknown => tenantOfRow(resource.name, after);

function tenantOfRow(resource: ResourceName, row: Row): unknown {
  return RESOURCES[resource].scopeKind === 'isTenant' ? row.id : (row.tenantId ?? PLATFORM);
}

const hasValue = ({ customFields }: Row, name: string): boolean =>
  typeof customFields === 'object' && customFields !== null && Object.hasOwn(customFields, name);

const bytesOf = (values: object): number => Buffer.byteLength(JSON.stringify(values));

/**
 * An update merges its values with those of the record, so that the limit of a request does not bound
 * them. A record from before the limit may become smaller.
 */
function checkSize(draft: Draft, values: object, present: object): void {
  const bytes = bytesOf(values);
  if (bytes > MAX_CUSTOM_FIELDS_BYTES && bytes > bytesOf(present))
    draft.error(
      'customFields',
      'size',
      `must not exceed ${MAX_CUSTOM_FIELDS_BYTES} bytes, those that the record keeps included`,
    );
}

/**
 * Checks the values of custom fields: defined, of their type, present when required, and not too large. A
 * record from before a field was required may go on without a value.
 */
export function checkCustomFields(draft: Draft): void {
  const { before, after, resource, snapshot } = draft;
  const changesTenant = draft.hasChanged('tenantId');
  if (!draft.isValid('customFields') || (!draft.isProvided('customFields') && !changesTenant))
    return;
  // The platform's definition of a name replaces that of the tenant.
  const definitions = new Map(
    [...new Set([tenantOf(draft), PLATFORM])]
      .filter(isPlainId)
      .flatMap((tenant) =>
        snapshot
          .where('custom-fields', ['tenantId', 'resource'], [tenant, resource.name])
          .map((each) => [String(each.name), each] as const),
      ),
  );
  const values = Object.fromEntries(
    Object.entries(after.customFields as Record<string, unknown>).filter(
      ([, value]) => value !== null,
    ),
  );
  after.customFields = values;
  const present = (before?.customFields ?? {}) as Record<string, unknown>;
  checkSize(draft, values, present);
  for (const [name, value] of Object.entries(values)) {
    // A value that the request does not change may have been stored under another definition.
    const isPresent = Object.hasOwn(present, name) && isSame(value, present[name]);
    if (!changesTenant && isPresent) continue;
    const definition = definitions.get(name);
    const pointer = `customFields/${escapePointer(name)}`;
    if (definition) {
      const kept = Array.isArray(present[name]) ? (present[name] as unknown[]) : [];
      const message = typeError(value, definition, kept);
      if (message !== undefined) draft.error(pointer, 'custom_field', message);
    } else {
      draft.error(
        pointer,
        'unknown_field',
        `no custom field of ${nounOf(resource.kind, 2)} has this name`,
      );
    }
  }
  for (const [name, { required }] of definitions) {
    const isAsked = !before || changesTenant || Object.hasOwn(present, name);
    if (required === true && isAsked && !Object.hasOwn(values, name))
      draft.error(`customFields/${escapePointer(name)}`, 'required', 'is required');
  }
}

/** Checks that added tags exist. */
export function checkTags(draft: Draft): void {
  const { before, after, snapshot } = draft;
  if (!draft.isProvided('tags') || !draft.isValid('tags')) return;
  const present = new Set(before?.tags as string[] | undefined);
  collectMissing((after.tags as string[]).entries(), ([i, id]) => {
    if (!present.has(id) && !snapshot.get('tags', id))
      draft.error(`tags/${i}`, 'not_found', `there is no tag ${id}`);
  });
}

/** Checks that choices and bounds belong to the type of a definition. */
function checkOptions(draft: Draft): void {
  const { after } = draft;
  const isChoice = after.type === 'choice' || after.type === 'choices';
  const isNumeric = after.type === 'integer' || after.type === 'number';
  const hasChoices = (after.choices as unknown[]).length > 0;
  if (isChoice && !hasChoices) draft.error('choices', 'choices', 'is required for this type');
  if (!isChoice && hasChoices)
    draft.error('choices', 'choices', 'is for the types choice and choices');
  const { minimum, maximum } = after;
  if (!isNumeric) {
    for (const bound of ['minimum', 'maximum'])
      if (after[bound] !== null) draft.error(bound, 'bounds', 'is for numbers');
  } else if (minimum !== null && maximum !== null && Number(minimum) > Number(maximum))
    draft.error('maximum', 'range_reversed', 'is lower than minimum');
}

/** The definition by the platform of the name that a tenant's definition has. */
const platformDefinition = (snapshot: PlanSnapshot, { id, resource, name }: Row): Row | undefined =>
  snapshot
    .where('custom-fields', ['tenantId', 'resource', 'name'], [PLATFORM, resource, name])
    .find((each) => each.id !== id);

/**
 * The tenants whose own definition of a name holds again without that of the platform, so that their
 * values do not keep it.
 */
const replacedDefiners = (
  snapshot: PlanSnapshot,
  { tenantId, resource, name }: Row,
): Set<unknown> =>
  new Set(
    tenantId === PLATFORM
      ? snapshot
          .where('custom-fields', ['resource', 'name'], [resource, name])
          .map((each) => each.tenantId)
          .filter((definer) => definer !== PLATFORM)
      : [],
  );

/**
 * A tenant cannot define a name that the platform has. The platform can define one that tenants
 * have, else a tenant could reserve names against it.
 */
function checkName(draft: Draft): void {
  const { after, snapshot } = draft;
  if (after.tenantId === PLATFORM) return;
  const duplicate = platformDefinition(snapshot, after);
  if (!duplicate) return;
  const other = { resource: 'custom-fields', row: duplicate };
  draft.conflict('duplicate', 'the platform uses this name', other, 'name');
}

/**
 * Adds a conflict for records that have a value and would lose its definition, which is deleted or moves to
 * the tenant `keeper`.
 */
function checkValues({ snapshot, conflict }: Draft, definition: Row, keeper?: unknown): void {
  const { tenantId, resource, name } = definition as Row & { resource: ResourceName; name: string };
  // The platform's definition holds for all tenants.
  if (keeper === PLATFORM || (tenantId !== PLATFORM && platformDefinition(snapshot, definition)))
    return;
  const others = replacedDefiners(snapshot, definition);
  if (keeper !== undefined) others.add(keeper);
  const isDefined = (tenant: unknown) =>
    [PLATFORM, tenant].includes(tenantId) && !others.has(tenant);
  const planned = snapshot
    .changedIn(customFieldGroup(resource, name))
    .filter(({ row }) => hasValue(row, name) && isDefined(tenantOfRow(resource, row)))
    .map(asReferrer);
  const field = JSON.stringify([tenantId, resource, name, [...others].sort()]);
  for (const referrer of snapshot.referrersOf('customFieldReferrers', field, planned))
    conflict('in_use', `${nounOf(referrer.resource)} ${referrer.label} has a value`, referrer);
}

export const customFieldRules: Rules = {
  write(draft) {
    const { before, after } = draft;
    if (!draft.isValid('type', 'choices', 'minimum', 'maximum', 'name', 'resource')) return;
    checkOptions(draft);
    if (before && !(draft.isValid('tenantId') && draft.hasChanged('tenantId'))) return;
    checkName(draft);
    if (before) checkValues(draft, before, after.tenantId);
  },
  remove: (draft) => checkValues(draft, draft.after),
};

export const tagRules: Rules = {
  remove({ after, snapshot, conflict }) {
    const planned = snapshot
      .changedIn(tagGroup(after.id))
      .filter(({ row }) => Array.isArray(row.tags) && row.tags.includes(after.id))
      .map(asReferrer);
    for (const referrer of snapshot.referrersOf('tagReferrers', after.id, planned))
      conflict('in_use', `${nounOf(referrer.resource)} ${referrer.label} has the tag`, referrer);
  },
};
