/** The size of a file, and the number of its rows. */
export const MAX_IMPORT_BYTES = 32 * 1_048_576;
/** In which time a file must arrive: the largest one with 1 Mbit/s. It holds a connection to the database. */
export const MAX_IMPORT_SECONDS = 300;
export const MAX_IMPORT_ROWS = 200_000;
/** The number of rows of a dry run. It is lower, because a dry run keeps them in memory. */
export const MAX_DRY_RUN_ROWS = 50_000;
/** The number of rows that are written together with their history, in the mode `all`. */
export const MAX_ATOMIC_ROWS = 10_000;

/** `each`: the valid rows are written. `all`: all rows or none. */
export const IMPORT_MODES = ['each', 'all'] as const;
export type ImportMode = (typeof IMPORT_MODES)[number];

/** How many rows a file may have. */
export const maxRowsOf = ({ mode, dryRun }: { mode: ImportMode; dryRun: boolean }): number =>
  mode === 'all' ? MAX_ATOMIC_ROWS : dryRun ? MAX_DRY_RUN_ROWS : MAX_IMPORT_ROWS;
