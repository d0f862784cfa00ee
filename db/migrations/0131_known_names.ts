import type { Knex } from 'knex';

/** SQL: what `trim` of JavaScript removes and NFKC leaves. */
const SPACES = String.raw`U&' \0009\000A\000B\000C\000D\1680\2028\2029\FEFF'`;

/**
 * A requester must not decide under another name of theirs: accounts are found by any name in any letter case,
 * Unicode form and space around it, as the product compares names. `lower` finds no other spelling of `Åsa` in
 * databases with the locale C, nor of a ligature in any. The small letter of the dotted İ is two characters,
 * which `fold_name` does not write.
 */
const KNOWN_NAME = String.raw`
  CREATE FUNCTION known_name(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN fold_name(replace(btrim(normalize(name, NFKC), ${SPACES}), U&'\0130', U&'i\0307'))`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(KNOWN_NAME);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP FUNCTION known_name');
}
