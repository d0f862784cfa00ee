import type { Knex } from 'knex';

/** Tables whose records can be moved to another tenant. */
const MOVABLE = [
  'regions',
  'sites',
  'locations',
  'racks',
  'devices',
  'cables',
  'vrfs',
  'vlan_groups',
  'vlans',
  'prefixes',
  'ip_ranges',
  'ip_addresses',
  'custom_fields',
];

/**
 * While everything of a tenant is held, its records are not moved to another tenant, where they could
 * be deleted. A hold on the whole installation keeps them there, too.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION refuse_held_move() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      hold legal_holds;
    BEGIN
      PERFORM share_hold_lock(ARRAY[OLD.tenant_id]);
      SELECT * INTO hold FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)
        AND h.subject_id IS NULL AND h.tenant_id = OLD.tenant_id AND h.tenant_id <> 'platform' LIMIT 1;
      PERFORM refuse_if_held(hold);
      RETURN NULL;
    END $$;
  `);
  for (const table of MOVABLE)
    await knex.raw(`
      CREATE TRIGGER hold_${table}_move AFTER UPDATE OF tenant_id ON ${table} FOR EACH ROW
        WHEN (OLD.tenant_id <> NEW.tenant_id) EXECUTE FUNCTION refuse_held_move()`);
}

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw('DROP FUNCTION refuse_held_move CASCADE'));
