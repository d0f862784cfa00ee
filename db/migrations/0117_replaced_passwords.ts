import type { Knex } from 'knex';

/**
 * The end of a one-time password does not count for the password that replaces it. Processes of version 0.2 know
 * nothing of the end: they reset a password and leave the end of the former one.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION forget_password_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.password_expires_at := NULL;
      RETURN NEW;
    END $$;
    CREATE TRIGGER password_replaced BEFORE UPDATE OF password_hash ON users FOR EACH ROW
      WHEN (NEW.password_hash IS DISTINCT FROM OLD.password_hash
        AND NEW.password_expires_at IS NOT DISTINCT FROM OLD.password_expires_at)
      EXECUTE FUNCTION forget_password_end()`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP TRIGGER password_replaced ON users; DROP FUNCTION forget_password_end');
}
