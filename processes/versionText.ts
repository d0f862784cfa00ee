import { MIGRATIONS } from '../db/migrations/index.ts';
import { APP_VERSION } from '../platform/version.ts';

/** What `--version` prints: the version, and the newest migration that it knows. */
export const versionText = (): string =>
  `holdfast ${APP_VERSION}, schema ${Object.keys(MIGRATIONS).at(-1) ?? ''}`;
