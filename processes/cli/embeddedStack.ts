import { stat } from 'node:fs/promises';
import path from 'node:path';
import { ConfigError } from '../../platform/config.ts';

/** The code of the embedded stack. Images omit it. */
const FOLDER = path.resolve(import.meta.dirname, '../../dev');

/**
 * Loads a module that needs the embedded stack, as late as a command turns out to need it. Error: `ConfigError` in an
 * installation without that code, such as the image, which always needs `DATABASE_URL`.
 */
export async function withEmbeddedStack<T>(load: () => Promise<T>): Promise<T> {
  if (!(await stat(FOLDER).catch(() => undefined)))
    throw new ConfigError('DATABASE_URL is not set, and this image has no embedded stack.');
  return load();
}
