import { ownValue } from './ownValue.ts';

/** The form of ids: three letters of the kind, and a UUIDv7 in base 32. */
const ID = /^([a-z]{3})_[0-9a-z]{26}$/;

/** Pages of records, by the letters of their ids. */
const PAGES: Readonly<Record<string, string>> = {
  apr: '/approvals',
  asg: '/access/assignments',
  aud: '/audit',
  bkp: '/backups',
  idp: '/access/providers',
  imp: '/inventory/imports',
  dlv: '/deliveries',
  evt: '/events',
  job: '/jobs',
  map: '/access/mappings',
  rol: '/access/roles',
  rnr: '/runners',
  sch: '/schedules',
  sec: '/secrets',
  tok: '/access/tokens',
  usr: '/access/users',
  whk: '/webhooks',
  reg: '/inventory/regions',
  sit: '/inventory/sites',
  loc: '/inventory/locations',
  rck: '/inventory/racks',
  mfr: '/inventory/manufacturers',
  dty: '/inventory/device-types',
  drl: '/inventory/device-roles',
  plt: '/inventory/platforms',
  dev: '/inventory/devices',
  int: '/inventory/interfaces',
  cab: '/inventory/cables',
  vrf: '/inventory/vrfs',
  vlg: '/inventory/vlan-groups',
  vln: '/inventory/vlans',
  pfx: '/inventory/prefixes',
  rng: '/inventory/ip-ranges',
  ipa: '/inventory/ip-addresses',
  cfd: '/inventory/custom-fields',
};

/**
 * Kinds without a page: requests, sessions, legal holds, archives of the audit log, and what only processes know.
 * `/id/<id>` says what it can about them; it searches the ids of kinds that this console does not know.
 */
const WITHOUT_PAGE: ReadonlySet<string> = new Set([
  'req',
  'ses',
  'hld',
  'aar',
  'dec',
  'lgn',
  'out',
  'wrk',
]);

/** Pages of kinds of records whose ids their creators choose, or some of which the installation has. */
const CHOSEN_IDS: ReadonlyMap<string, string> = new Map([
  ['tenants', '/inventory/tenants'],
  ['tags', '/inventory/tags'],
  ['roles', '/access/roles'],
  ['providers', '/access/providers'],
]);

/** The kind of what an event is about, if its id was chosen: `tenants` of a `tenant`. */
export const chosenKindOf = (type: string): string | undefined =>
  ownValue({ tenant: 'tenants', tag: 'tags' }, type);

/** True for text that has the form of a record's id. */
export const isRecordId = (text: string): boolean => ID.test(text);

const lettersOf = (id: string): string | undefined => ID.exec(id)?.[1];

/** True for the id of something that no page shows: a link to it would lead nowhere. */
export const hasNoPage = (id: string): boolean => WITHOUT_PAGE.has(lettersOf(id) ?? '');

/** The path of the page of a record; `kind` as `included.labels` calls it, where it is known. */
export function recordPath(id: string, kind?: string): string {
  const chosen = CHOSEN_IDS.get(kind ?? '');
  if (chosen !== undefined) return `${chosen}/${encodeURIComponent(id)}`;
  const page = PAGES[lettersOf(id) ?? ''];
  return page === undefined ? `/id/${encodeURIComponent(id)}` : `${page}/${id}`;
}

/** The end of an id, by which people recognize it: `job_…q0q8s3rt`. */
export const shortId = (id: string): string =>
  isRecordId(id) ? `${id.slice(0, 4)}…${id.slice(-8)}` : id;
