import type { Knex } from 'knex';

/**
 * A change of the height and the depth of a device type could be refused although all its devices fit: the rack
 * units of the devices are computed one after the other, and each was compared with the former units of the
 * next ones. These units are now cleared first.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE OR REPLACE FUNCTION recompute_device_units() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_TABLE_NAME = 'racks' THEN
        UPDATE devices SET position = position WHERE rack_id = NEW.id AND position IS NOT NULL;
      ELSE
        UPDATE devices SET units = NULL, depth = NULL WHERE device_type_id = NEW.id AND units IS NOT NULL;
        UPDATE devices SET position = position WHERE device_type_id = NEW.id AND position IS NOT NULL;
      END IF;
      RETURN NULL;
    END $$`));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE OR REPLACE FUNCTION recompute_device_units() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_TABLE_NAME = 'racks' THEN
        UPDATE devices SET position = position WHERE rack_id = NEW.id AND position IS NOT NULL;
      ELSE
        UPDATE devices SET position = position WHERE device_type_id = NEW.id AND position IS NOT NULL;
      END IF;
      RETURN NULL;
    END $$`));
