import path from 'node:path';

/** Where the processes of tests keep compiled modules: most of a start is compiling. */
export const COMPILE_CACHE = path.resolve(
  import.meta.dirname,
  '../../node_modules/.cache/holdfast/compiled',
);
