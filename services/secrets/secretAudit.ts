import { recordOf } from '../../db/core/recordAudit.ts';
import type { SecretData } from '../../domain/secrets/secrets.ts';

type SecretEvent = 'secret.created' | 'secret.updated' | 'secret.deleted';

/**
 * Audit entries have what callers see of a secret. Events have its id alone: who may read events may not
 * read which secrets there are.
 */
export const secretRecord = recordOf<SecretData, SecretEvent>({
  type: 'secret',
  auditView: ({ name, description, pools }) => ({ name, description, pools }),
  events: { created: 'secret.created', updated: 'secret.updated', deleted: 'secret.deleted' },
  eventData: ({ id }) => ({ secretId: id }),
});
