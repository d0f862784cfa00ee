import { choice, integer, number, reference, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const tenants = resource({
  name: 'tenants',
  kind: 'tenant',
  ids: null,
  standing: 'isTenant',
  fields: { name: text({ required: true }) },
  search: ['id', 'name', 'description'],
});

export const regions = resource({
  name: 'regions',
  kind: 'region',
  ids: 'reg',
  fields: { name: text({ required: true }), parentId: reference('regions') },
  unique: [['tenantId', 'name']],
});

const PLACE_STATUSES = ['planned', 'active', 'retired'];

export const sites = resource({
  name: 'sites',
  kind: 'site',
  ids: 'sit',
  standing: 'isSite',
  fields: {
    name: text({ required: true }),
    status: choice(PLACE_STATUSES, { default: 'active' }),
    regionId: reference('regions'),
    address: text({ max: 255 }),
    latitude: number(-90, 90),
    longitude: number(-180, 180),
  },
  unique: [['tenantId', 'name']],
  search: ['name', 'address', 'description'],
});

export const locations = resource({
  name: 'locations',
  kind: 'location',
  ids: 'loc',
  standing: 'site',
  fields: {
    name: text({ required: true }),
    status: choice(PLACE_STATUSES, { default: 'active' }),
    siteId: reference('sites', { required: true }),
    parentId: reference('locations'),
  },
  unique: [['siteId', 'name']],
});

export const racks = resource({
  name: 'racks',
  kind: 'rack',
  ids: 'rck',
  standing: 'site',
  fields: {
    name: text({ required: true }),
    status: choice(PLACE_STATUSES, { default: 'active' }),
    siteId: reference('sites', { required: true }),
    locationId: reference('locations'),
    uHeight: integer(1, 100, { default: 42, description: 'Rack units.' }),
    serial: text(),
  },
  unique: [['siteId', 'name']],
  search: ['name', 'serial', 'description'],
});
