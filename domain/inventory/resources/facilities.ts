import { choice, integer, number, reference, text } from '../fields.ts';
import { defineResource } from '../resource.ts';

export const tenants = defineResource({
  name: 'tenants',
  kind: 'tenant',
  idPrefix: null,
  scopeKind: 'isTenant',
  fields: { name: text({ required: true }) },
  searchFields: ['id', 'name', 'description'],
});

export const regions = defineResource({
  name: 'regions',
  kind: 'region',
  idPrefix: 'reg',
  sharable: true,
  fields: { name: text({ required: true }), parentId: reference('regions') },
  uniqueKeys: [['tenantId', 'name']],
});

const FACILITY_STATUSES = ['planned', 'active', 'retired'];

export const sites = defineResource({
  name: 'sites',
  kind: 'site',
  idPrefix: 'sit',
  sharable: true,
  scopeKind: 'isSite',
  fields: {
    name: text({ required: true }),
    status: choice(FACILITY_STATUSES, { default: 'active' }),
    regionId: reference('regions'),
    address: text({ max: 255 }),
    latitude: number(-90, 90),
    longitude: number(-180, 180),
  },
  uniqueKeys: [['tenantId', 'name']],
  searchFields: ['name', 'address', 'description'],
});

export const locations = defineResource({
  name: 'locations',
  kind: 'location',
  idPrefix: 'loc',
  sharable: true,
  scopeKind: 'site',
  fields: {
    name: text({ required: true }),
    status: choice(FACILITY_STATUSES, { default: 'active' }),
    siteId: reference('sites', { required: true }),
    parentId: reference('locations'),
  },
  uniqueKeys: [['tenantId', 'siteId', 'name']],
});

export const racks = defineResource({
  name: 'racks',
  kind: 'rack',
  idPrefix: 'rck',
  sharable: true,
  scopeKind: 'site',
  fields: {
    name: text({ required: true }),
    status: choice(FACILITY_STATUSES, { default: 'active' }),
    siteId: reference('sites', { required: true }),
    locationId: reference('locations'),
    uHeight: integer(1, 100, { default: 42, description: 'Rack units.' }),
    serial: text(),
  },
  uniqueKeys: [['tenantId', 'siteId', 'name']],
  searchFields: ['name', 'serial', 'description'],
});
