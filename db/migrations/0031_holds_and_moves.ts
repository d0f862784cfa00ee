import type { Knex } from 'knex';
import { FUNCTIONS } from './0029_audit_archives.ts';

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
 *
 * A hold of a tenant on a user keeps entries about the user in the audit log of this tenant only.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(ARCHIVED_DELETION.replace(ANY_SUBJECT, OWN_SUBJECT));
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

const ARCHIVED_DELETION = FUNCTIONS.slice(
  FUNCTIONS.indexOf('CREATE FUNCTION delete_archived_audit_entries'),
).replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION');
const ANY_SUBJECT = '(e.subject_type, e.subject_id) = (h.subject_type, h.subject_id)';
const OWN_SUBJECT = `${ANY_SUBJECT}
          AND (h.subject_type <> 'user' OR h.tenant_id IN (e.tenant_id, 'platform'))`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP FUNCTION refuse_held_move CASCADE');
  await knex.raw(ARCHIVED_DELETION);
}
