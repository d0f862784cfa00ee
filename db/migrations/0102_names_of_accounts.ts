import type { Knex } from 'knex';

/** The letters beyond ASCII that have a small letter of one character, and these. */
function letters(): { capital: string; small: string } {
  // Sigma has two small letters.
  let [capital, small] = ['ς', 'σ'];
  for (let code = 0x80; code < 0x20000; code++) {
    const letter = String.fromCodePoint(code);
    const lower = letter.toLowerCase();
    const isOne = String.fromCodePoint(lower.codePointAt(0) ?? 0) === lower;
    if (lower === letter || !isOne) continue;
    capital += letter;
    small += lower;
  }
  return { capital, small };
}

/**
 * Names of accounts are compared in any letter case and Unicode form. `lower` changes only the letters A to Z
 * in databases with the locale C, so `Åsa` and `åsa` were two accounts, and one person was not
 * known by the other spelling.
 */
export async function up(knex: Knex): Promise<void> {
  const { capital, small } = letters();
  await knex.raw(`
    CREATE FUNCTION fold_name(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
      SELECT CASE WHEN octet_length(name) = char_length(name) THEN lower(name)
        ELSE lower(translate(normalize(name, NFKC), '${capital}', '${small}')) END
    $$`);
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('DROP FUNCTION fold_name');
}
