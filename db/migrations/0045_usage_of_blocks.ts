import type { Knex } from 'knex';

/**
 * The usage of a prefix adds up the counts of its blocks of 256 addresses, in its space, and reads
 * only the addresses that `used_blocks` does not count there: those with a shared role.
 */
export const up = async (knex: Knex): Promise<void> =>
  void (await knex.raw(`
    CREATE INDEX used_blocks_in_space ON used_blocks (space_key, block);
    CREATE INDEX ip_addresses_roles_in_space ON ip_addresses (space_key, host) WHERE shared <> 0;
    CREATE INDEX ip_addresses_roles ON ip_addresses (vrf_key, host) WHERE shared <> 0;
  `));

export const down = async (knex: Knex): Promise<void> =>
  void (await knex.raw(
    'DROP INDEX used_blocks_in_space, ip_addresses_roles_in_space, ip_addresses_roles',
  ));
