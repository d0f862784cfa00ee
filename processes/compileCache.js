import { enableCompileCache } from 'node:module';
import path from 'node:path';

/**
 * Keeps what Node has compiled for the next start: it starts sooner, and a process that strips no types from its sources
 * does not load the compiler that does. Loaded with `--import`, before the program. Node does without where the folder cannot
 * be written.
 */
enableCompileCache(
  path.join(import.meta.dirname, '..', 'node_modules', '.cache', 'holdfast', 'compiled'),
);
