import { randomBytes } from 'node:crypto';
import { invalidField } from '../domain/shared/errors.ts';
import { MASK } from '../domain/mask.ts';
import { chosenSecret, secretOf } from '../domain/signing.ts';
import type { Vault } from '../platform/vault.ts';

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

const KEY_BYTES = 32;

/** The sealed secrets of a webhook, as its row has them. */
export type SealedSecrets = {
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: Date | null;
};

/** Makes, checks, seals and opens the secrets with which deliveries are signed. */
export function createWebhookSecrets(vault: Vault) {
  const contextOf = (webhookId: string) => `webhook:${webhookId}`;
  const seal = (webhookId: string, secret: string) => vault.seal(secret, contextOf(webhookId));
  const open = (webhookId: string, sealed: string) => vault.open(sealed, contextOf(webhookId));

  return {
    /** A secret in its form: the one that was chosen, or a new one. Error: `invalid_request` at `/secret`. */
    chosenOrMade(chosen: string | undefined): string {
      if (chosen === undefined) return secretOf(randomBytes(KEY_BYTES));
      if (chosen === MASK)
        throw invalidField('body', '/secret', 'masked', 'is the mask, not a secret');
      const secret = chosenSecret(chosen);
      if (secret === undefined) {
        throw invalidField(
          'body',
          '/secret',
          'format',
          'must be whsec_ and 24 to 64 bytes in base64, or a text of 24 to 64 bytes',
        );
      }
      return secret;
    },

    /** Error: `master_key_missing`. */
    seal,

    /** The secrets that sign at `now`: the current one, and the one before it while it still does. Error: `master_key_missing`. */
    signing: (
      webhookId: string,
      { secret, previousSecret, previousSecretUntil }: SealedSecrets,
      now: Date,
    ): string[] =>
      [
        secret,
        ...(previousSecret !== null && previousSecretUntil !== null && previousSecretUntil > now
          ? [previousSecret]
          : []),
      ].map((sealed) => open(webhookId, sealed)),

    /** How many of these are under another than the first master key. */
    countStale: (sealed: readonly (string | null)[]): number =>
      sealed.filter((text) => text !== null && !vault.isCurrent(text)).length,

    /** The same secret under the first master key. */
    reseal: (webhookId: string, sealed: string): string =>
      vault.isCurrent(sealed) ? sealed : seal(webhookId, open(webhookId, sealed)),
  };
}
