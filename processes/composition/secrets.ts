import { createSecretsForAttempt } from '../../services/secrets/forAttempt.ts';
import { createSecrets } from '../../services/secrets/secrets.ts';
import type { Core } from './core.ts';

/** Builds named secrets, and what releases them to attempts. */
export const composeSecrets = (core: Core) => ({
  secrets: createSecrets(core),
  secretsForAttempt: createSecretsForAttempt(core),
});
