/**
 * SQL: that a column has this name, in any letter case and Unicode form. Names of people and of what they sign in with are
 * compared so everywhere, by `known_name` of the schema here and `normalizeName` in the product: `lower` of a database
 * with the locale C changes only the letters A to Z, so the indexes with it let `Ö` and `ö` be two names.
 */
export const isSameName = (column: string): string => `known_name(${column}) = known_name(?)`;
