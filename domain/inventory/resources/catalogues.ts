import { choice, choices, flag, integer, matching, number, reference, text } from '../fields.ts';
import { RESOURCE_NAMES } from '../names.ts';
import { resource } from '../resource.ts';

const COLOR = '^#[0-9a-f]{6}$';
const color = matching(COLOR, 'must be a colour such as #00a1ff');

export const manufacturers = resource({
  name: 'manufacturers',
  kind: 'manufacturer',
  ids: 'mfr',
  standing: 'catalogue',
  fields: { name: text({ required: true }) },
  unique: [['name']],
});

export const deviceTypes = resource({
  name: 'device-types',
  kind: 'device-type',
  ids: 'dty',
  standing: 'catalogue',
  fields: {
    manufacturerId: reference('manufacturers', { required: true }),
    model: text({ required: true }),
    uHeight: integer(0, 100, { default: 1, description: 'Rack units; 0 for what takes none.' }),
    fullDepth: flag(true, { description: 'Takes the units on both faces of a rack.' }),
  },
  unique: [['manufacturerId', 'model']],
  label: 'model',
  sorts: ['model'],
  search: ['model', 'description'],
  names: ['model'],
});

export const deviceRoles = resource({
  name: 'device-roles',
  kind: 'device-role',
  ids: 'drl',
  standing: 'catalogue',
  fields: { name: text({ required: true }), color },
  unique: [['name']],
});

export const platforms = resource({
  name: 'platforms',
  kind: 'platform',
  ids: 'plt',
  standing: 'catalogue',
  fields: { name: text({ required: true }), manufacturerId: reference('manufacturers') },
  unique: [['name']],
});

export const tags = resource({
  name: 'tags',
  kind: 'tag',
  ids: null,
  standing: 'catalogue',
  fields: { name: text({ required: true }), color },
  search: ['id', 'name', 'description'],
});

export const CUSTOM_TYPES = [
  'text',
  'integer',
  'number',
  'boolean',
  'date',
  'url',
  'choice',
  'choices',
] as const;

/** Definitions of the platform hold for all tenants, those of a tenant for its own records. */
export const customFields = resource({
  name: 'custom-fields',
  kind: 'custom-field',
  ids: 'cfd',
  fields: {
    resource: choice(RESOURCE_NAMES, { required: true, fixed: true }),
    name: matching(
      '^[a-z][a-z0-9_]{0,49}$',
      'must be a lower-case letter, then lower-case letters, digits or _, at most 50',
      { required: true, fixed: true },
    ),
    type: choice(CUSTOM_TYPES, { required: true, fixed: true }),
    required: flag(false),
    choices: choices(),
    minimum: number(-1e15, 1e15),
    maximum: number(-1e15, 1e15),
  },
  unique: [['tenantId', 'resource', 'name']],
});
