import type { Knex } from '../core/knex.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { INHERITED, type Resource, type Row } from '../../domain/inventory/resource.ts';
import { inheritedFrom, storedForm, tableOf } from './tables.ts';

const siteOfSpace = (network: string, exceptId: string): string =>
  `site_of_space(coalesce(r.vrf_id, 'global'), r.tenant_id, ${network}, ${exceptId})`;

const ofDevice = (column: string): string =>
  `(SELECT ${column} FROM devices WHERE id = r.device_id AND tenant_id = r.tenant_id)`;

const ofInterface = (column: string, reference: string): string =>
  `(SELECT ${column} FROM interfaces WHERE id = r.${reference} AND tenant_id = r.tenant_id)`;

/** SQL: the inherited scopes of a row `r`, site and device of each, as the triggers set them. */
const INHERITED_SQL: Readonly<Partial<Record<ResourceName, readonly string[]>>> = {
  prefixes: [`coalesce(r.site_id, ${siteOfSpace('r.cidr', 'r.id')})`, 'NULL'],
  'ip-ranges': [siteOfSpace('inet_merge(r.start_address, r.end_address)', "''"), 'NULL'],
  'ip-addresses': [
    ofDevice('site_id'),
    ofDevice('id'),
    siteOfSpace('host(r.address)::inet', "''"),
    'NULL',
  ],
  vlans: [
    `coalesce(r.site_id, (SELECT site_id FROM vlan_groups WHERE id = r.group_id AND tenant_id = r.tenant_id))`,
    'NULL',
  ],
  cables: ['a_interface_id', 'b_interface_id'].flatMap((end) => [
    ofInterface('site_id', end),
    ofInterface('device_id', end),
  ]),
};

/** Past states of records with what they would belong to through the other records of now. */
export async function inheritAsOfNow(
  db: Knex,
  resource: Resource,
  states: readonly Row[],
): Promise<Row[]> {
  const elements = INHERITED_SQL[resource.name];
  if (!elements || states.length === 0) return [...states];
  const { rows } = await db.raw<{ rows: { scopes: (string | null)[] }[] }>(
    `SELECT ARRAY[${elements.join(', ')}]::text[] AS scopes
     FROM ROWS FROM (json_populate_recordset(NULL::${tableOf(resource)}, ?::json)) WITH ORDINALITY AS r
     ORDER BY r.ordinality`,
    [JSON.stringify(states.map((state) => storedForm(resource, state)))],
  );
  return states.map((state, i) => ({
    ...state,
    [INHERITED]: inheritedFrom(rows[i]?.scopes ?? []),
  }));
}
