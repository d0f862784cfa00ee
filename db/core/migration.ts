import type { Knex } from './knex.ts';

/**
 * What makes a migration a contract step: it removes what processes of an older version use. `needs` is
 * the migration that a process must know to run on the schema that the step leaves, and `reason` says
 * what is removed and why nothing uses it any more.
 */
export type ContractStep = { needs: string; reason: string };

/**
 * A migration. It runs in a transaction of its own, unless `config.transaction` is false: then it must do
 * nothing that is wrong when it is repeated after it was interrupted (`createIndexOnline`).
 */
export type Migration = {
  up(knex: Knex): Promise<void>;
  down(knex: Knex): Promise<void>;
  config?: { transaction?: boolean };
  contract?: ContractStep;
};

/** Migrations by name, in the order in which they run. */
export type Migrations = Readonly<Record<string, Migration>>;
