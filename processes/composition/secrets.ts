import { createSecretsForAttempt } from '../../services/secrets/forAttempt.ts';
import { createSecrets } from '../../services/secrets/secrets.ts';
import { createSecretValues } from '../../services/secrets/secretValues.ts';
import type { Core } from './core.ts';

/** Builds named secrets, and what releases them to attempts. */
export function composeSecrets(core: Core) {
  const secretValues = createSecretValues(core.vault);
  return {
    secrets: createSecrets({ ...core, secretValues }),
    secretsForAttempt: createSecretsForAttempt({ ...core, secretValues }),
  };
}
