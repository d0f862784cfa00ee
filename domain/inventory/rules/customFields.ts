import { PLATFORM } from '../../access/scope.ts';
import type { Draft, Rules } from '../planning.ts';
import type { Row } from '../resource.ts';
import { gathering } from '../planSnapshot.ts';

const DATE = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const MAX_TEXT = 2_000;

const isText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= MAX_TEXT &&
  !value.includes('\0') &&
  value.isWellFormed();

/** Why a value does not fit a definition; undefined when it does. */
function misfit(value: unknown, { type, choices, minimum, maximum }: Row): string | undefined {
  const listed = choices as readonly unknown[];
  switch (type) {
    case 'integer':
    case 'number': {
      if (
        typeof value !== 'number' ||
        !Number.isFinite(value) ||
        (type === 'integer' && !Number.isSafeInteger(value))
      )
        return `must be ${type === 'integer' ? 'an integer' : 'a number'}`;
      if (typeof minimum === 'number' && value < minimum) return `must be at least ${minimum}`;
      return typeof maximum === 'number' && value > maximum
        ? `must be at most ${maximum}`
        : undefined;
    }
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'must be true or false';
    case 'date':
      return isText(value) &&
        DATE.test(value) &&
        !Number.isNaN(Date.parse(value)) &&
        new Date(value).toISOString().startsWith(value)
        ? undefined
        : 'must be a date such as 2026-11-21';
    case 'url':
      return isText(value) && /^https?:$/.test(URL.parse(value)?.protocol ?? '')
        ? undefined
        : 'must be an http or https URL';
    case 'choice':
      return listed.includes(value) ? undefined : `must be one of ${listed.join(', ')}`;
    case 'choices':
      return Array.isArray(value) &&
        new Set(value).size === value.length &&
        value.every((each) => listed.includes(each))
        ? undefined
        : `must be a list of ${listed.join(', ')}, each once`;
    default:
      return isText(value) ? undefined : `must be a text of at most ${MAX_TEXT} characters`;
  }
}

/** Which tenant's definitions hold for a record, beside the platform's. */
const tenantOf = ({ resource, after }: Draft): unknown =>
  resource.standing === 'isTenant' ? after.id : (after.tenantId ?? PLATFORM);

/** Values of custom fields: known, of their type, and there where they must be. */
export function checkCustomFields(draft: Draft): void {
  const { after, resource, world, operation } = draft;
  const isNew = operation === 'create';
  if (
    !draft.sound('customFields') ||
    (!isNew && !draft.given('customFields') && !draft.changes('tenantId'))
  )
    return;
  const tenants = [PLATFORM, tenantOf(draft)];
  const definitions = world
    .where('custom-fields', ['resource'], [resource.name])
    .filter(({ tenantId }) => tenants.includes(String(tenantId)));
  const values = Object.fromEntries(
    Object.entries(after.customFields as Record<string, unknown>).filter(
      ([, value]) => value !== null,
    ),
  );
  after.customFields = values;
  for (const [name, value] of Object.entries(values)) {
    const definition = definitions.find((each) => each.name === name);
    const wrong = definition
      ? misfit(value, definition)
      : `no custom field of ${resource.name} has this name`;
    if (wrong !== undefined)
      draft.error(`customFields/${name}`, definition ? 'custom_field' : 'unknown_field', wrong);
  }
  for (const { name, required } of definitions) {
    if (required === true && !Object.hasOwn(values, String(name)))
      draft.error(`customFields/${String(name)}`, 'required', 'is required');
  }
}

/** Tags that a record gets must be there. */
export function checkTags(draft: Draft): void {
  const { before, after, world } = draft;
  if (!draft.given('tags') || !draft.sound('tags')) return;
  const had = new Set(before?.tags as string[] | undefined);
  gathering((after.tags as string[]).entries(), ([i, id]) => {
    if (!had.has(id) && !world.get('tags', id))
      draft.error(`tags/${i}`, 'not_found', `there is no tag ${id}`);
  });
}

export const customFieldRules: Rules = {
  write(draft) {
    const { after, before, world } = draft;
    if (!draft.sound('type', 'choices', 'minimum', 'maximum', 'name', 'resource')) return;
    const [choosing, counting] = [
      String(after.type).startsWith('choice'),
      /^(?:integer|number)$/.test(String(after.type)),
    ];
    if (choosing !== (after.choices as unknown[]).length > 0)
      draft.error(
        'choices',
        'choices',
        choosing ? 'is required for this type' : 'is for the types choice and choices',
      );
    if (!counting && (after.minimum !== null || after.maximum !== null))
      draft.error('minimum', 'bounds', 'is for numbers');
    if (before && !draft.changes('tenantId')) return;
    const twins = world
      .where('custom-fields', ['resource', 'name'], [after.resource, after.name])
      .filter(({ id }) => id !== after.id);
    const twin = twins.find(
      ({ tenantId }) =>
        tenantId === PLATFORM || (after.tenantId === PLATFORM && tenantId !== PLATFORM),
    );
    if (twin && twin.tenantId !== after.tenantId)
      draft.conflict(
        'duplicate',
        'the name is taken, by the platform or by a tenant',
        { resource: 'custom-fields', row: twin },
        'name',
      );
  },
  remove(draft) {
    const { tenantId, resource, name } = draft.after;
    for (const { resource: of, id, label, row } of draft.world.factNow(
      'fieldUsers',
      JSON.stringify([tenantId, resource, name]),
    )) {
      draft.conflict('in_use', `${of} ${label} has a value`, {
        resource: of,
        row: row ?? { id, version: 0 },
      });
    }
  },
};

export const tagRules: Rules = {
  remove(draft) {
    for (const { resource, id, label, row } of draft.world.factNow('tagUsers', draft.after.id)) {
      draft.conflict('in_use', `${resource} ${label} has the tag`, {
        resource,
        row: row ?? { id, version: 0 },
      });
    }
  },
};
