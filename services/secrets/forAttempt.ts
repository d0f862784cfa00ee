import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { findSecretsOf, type FoundSecret } from '../../db/secrets/secrets.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import type { WantedSecrets } from '../../domain/runners/definition.ts';
import { secretContext } from '../../domain/secrets/secrets.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import { secretRecord } from './secretAudit.ts';

export type SecretsForAttempt = ReturnType<typeof createSecretsForAttempt>;

/** An attempt of a remote job, and the secrets that the definition of its type names. */
type AskingAttempt = {
  jobId: string;
  attempt: number;
  /** The pool of the runner that makes the attempt. */
  pool: string;
  wanted: WantedSecrets;
};

type Deps = { db: Knex; commit: Commit; vault: Vault; log: Log };

/** Releases the values of named secrets to attempts of remote jobs. */
export function createSecretsForAttempt({ db, commit, vault, log }: Deps) {
  function open({ id, name, sealed }: FoundSecret): string {
    try {
      return vault.open(sealed, secretContext(id));
    } catch (error) {
      log.error({ err: error, secretId: id }, 'the value of a secret cannot be decrypted');
      throw new JobFailure('secret_unreadable', `The secret ${name} cannot be decrypted`, {
        retryable: false,
      });
    }
  }

  /**
   * The values that an attempt asks for, by the names that its code reads. They belong to the tenant of
   * the job, or to the platform, and name the pool. Each secret that is released is audited in the
   * tenant of `caller`, for whom the job runs; if one is missing, none is released. Errors:
   * `JobFailure('secret_missing')`, the same whether there is no such secret or another pool has it;
   * `JobFailure('secret_unreadable')`.
   */
  return async (
    caller: Caller,
    { jobId, attempt, pool, wanted }: AskingAttempt,
  ): Promise<Record<string, string>> => {
    const asked = Object.entries(wanted);
    if (asked.length === 0) return {};
    const names = [...new Set(asked.map(([, { secret }]) => secret))].sort();
    const found = await findSecretsOf(db, caller.tenantId, names);
    const released = new Map(
      found.filter(({ pools }) => pools.includes(pool)).map((secret) => [secret.name, secret]),
    );
    const missing = names.filter((name) => !released.has(name));
    if (missing.length > 0)
      throw new JobFailure(
        'secret_missing',
        `The pool ${pool} gets no secret called ${missing.join(', ')} for jobs of this tenant`,
        { retryable: false },
      );
    const values = new Map([...released].map(([name, secret]) => [name, open(secret)]));
    await commit(caller, (work) => {
      for (const { id } of released.values())
        work.audit('secret.use', secretRecord.subject({ id }), { after: { jobId, attempt, pool } });
    });
    return Object.fromEntries(
      asked.map(([variable, { secret }]) => [
        variable,
        assertDefined(values.get(secret), 'secret'),
      ]),
    );
  };
}
