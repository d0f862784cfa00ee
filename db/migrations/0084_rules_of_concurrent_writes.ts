import type { Knex } from 'knex';
import { LOCKS } from '../core/advisoryLocks.ts';

/**
 * Two transactions could make a cycle of regions or locations: neither saw what the other had changed. Each
 * now waits for those before it, at its end, and reads what they have committed.
 *
 * An address that a transaction was creating while its device moved kept the former site: the update of the
 * addresses did not see it, and only the update of the interfaces, which follows, waited for that transaction.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(rejectCycle(`PERFORM pg_advisory_xact_lock(${LOCKS.trees});`));
  await knex.raw(
    updateAddresses('PERFORM FROM interfaces WHERE device_id = NEW.id FOR NO KEY UPDATE;'),
  );
}

const rejectCycle = (lock: string) => `
  CREATE OR REPLACE FUNCTION reject_cycle() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    ancestor text := NEW.parent_id;
    steps integer := 0;
  BEGIN
    ${lock}
    WHILE ancestor IS NOT NULL LOOP
      steps := steps + 1;
      IF ancestor = NEW.id OR steps > 100 THEN
        RAISE EXCEPTION '% is its own ancestor', NEW.id USING ERRCODE = 'check_violation';
      END IF;
      EXECUTE format('SELECT parent_id FROM %I WHERE id = $1', TG_TABLE_NAME) INTO ancestor USING ancestor;
    END LOOP;
    RETURN NULL;
  END $$;
`;

const updateAddresses = (lock: string) => `
  CREATE OR REPLACE FUNCTION update_addresses_of_device() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    ${lock}
    UPDATE ip_addresses AS t SET
      device_site_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.site_id END,
      scope_device_id = CASE WHEN t.tenant_id = NEW.tenant_id THEN NEW.id END
    WHERE t.device_id = NEW.id;
    RETURN NULL;
  END $$;
`;

export async function down(knex: Knex): Promise<void> {
  await knex.raw(updateAddresses(''));
  await knex.raw(rejectCycle(''));
}
