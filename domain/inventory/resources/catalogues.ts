import {
  choice,
  choices,
  color,
  flag,
  integer,
  matching,
  number,
  reference,
  text,
} from '../fields.ts';
import { RESOURCE_NAMES } from '../names.ts';
import { defineResource } from '../resource.ts';

const COLOR = 'With or without #, in any case; stored as #00a1ff.';

export const manufacturers = defineResource({
  name: 'manufacturers',
  kind: 'manufacturer',
  idPrefix: 'mfr',
  scopeKind: 'catalogue',
  fields: { name: text({ required: true }) },
  uniqueKeys: [['name']],
});

export const deviceTypes = defineResource({
  name: 'device-types',
  kind: 'device-type',
  idPrefix: 'dty',
  scopeKind: 'catalogue',
  fields: {
    manufacturerId: reference('manufacturers', { required: true }),
    model: text({ required: true }),
    uHeight: integer(0, 100, { default: 1, description: 'Rack units; 0 for what takes none.' }),
    fullDepth: flag(true, { description: 'Takes the units on both faces of a rack.' }),
  },
  uniqueKeys: [['manufacturerId', 'model']],
  labelField: 'model',
  sortFields: ['model'],
  searchFields: ['model', 'description'],
  lookupFields: ['model'],
});

export const deviceRoles = defineResource({
  name: 'device-roles',
  kind: 'device-role',
  idPrefix: 'drl',
  scopeKind: 'catalogue',
  fields: { name: text({ required: true }), color: color({ description: COLOR }) },
  uniqueKeys: [['name']],
});

export const platforms = defineResource({
  name: 'platforms',
  kind: 'platform',
  idPrefix: 'plt',
  scopeKind: 'catalogue',
  fields: { name: text({ required: true }), manufacturerId: reference('manufacturers') },
  uniqueKeys: [['name']],
});

export const tags = defineResource({
  name: 'tags',
  kind: 'tag',
  idPrefix: null,
  scopeKind: 'catalogue',
  fields: { name: text({ required: true }), color: color({ description: COLOR }) },
  searchFields: ['id', 'name', 'description'],
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

/**
 * Definitions of the platform hold for all tenants, those of a tenant for its own records unless the
 * platform has one of the same name.
 */
export const customFields = defineResource({
  name: 'custom-fields',
  kind: 'custom-field',
  idPrefix: 'cfd',
  isPlatformPublic: true,
  fields: {
    resource: choice(RESOURCE_NAMES, { required: true, immutable: true }),
    name: matching(
      '^[a-z][a-z0-9_]{0,49}$',
      'must be a lower-case letter, then lower-case letters, digits or _, at most 50',
      { required: true, immutable: true },
    ),
    type: choice(CUSTOM_TYPES, { required: true, immutable: true }),
    required: flag(false),
    choices: choices(),
    minimum: number(-1e15, 1e15),
    maximum: number(-1e15, 1e15),
  },
  uniqueKeys: [['tenantId', 'resource', 'name']],
});
