import { randomBytes } from 'node:crypto';
import { assertNotMask } from '../../domain/shared/sentSecret.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import { normalizeSecret, encodeSecret } from '../../domain/webhooks/signing.ts';
import type { Vault } from '../../platform/vault.ts';

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>;

const KEY_BYTES = 32;

/** The encrypted secrets in the row of a webhook. */
export type EncryptedSecrets = {
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: Date | null;
};

/** A secret in plain text, with advice about the one that was requested. */
export type NewSecret = { secret: string; warnings: Warning[] };

/** The context in which the vault encrypts the secrets of a webhook. */
export const webhookContext = (webhookId: string): string => `webhook:${webhookId}`;

/** Generates, checks, encrypts and decrypts the secrets that sign messages. */
export function createWebhookSecrets(vault: Vault) {
  const encrypt = (webhookId: string, secret: string) =>
    vault.seal(secret, webhookContext(webhookId));
  const decrypt = (webhookId: string, encrypted: string) =>
    vault.open(encrypted, webhookContext(webhookId));

  const canOpen = (webhookId: string, encrypted: string): boolean =>
    vault.canOpen(encrypted, webhookContext(webhookId));

  return {
    /** False for a secret that no configured master key opens. */
    canOpen,

    /**
     * Returns the requested secret in the format `whsec_…` with advice about it, or a new random
     * one. Error: `invalid_request` at `/secret`.
     */
    normalizeOrGenerate(requested: string | undefined): NewSecret {
      if (requested === undefined)
        return { secret: encodeSecret(randomBytes(KEY_BYTES)), warnings: [] };
      assertNotMask('/secret', requested);
      return normalizeSecret(requested);
    },

    /** Encrypts a secret for the row of its webhook. Error: `master_key_missing`. */
    encrypt,

    /** True for the secret that a webhook has. One that cannot be opened any more can be replaced. */
    isCurrent(webhookId: string, { secret }: EncryptedSecrets, requested: string): boolean {
      try {
        return decrypt(webhookId, secret) === requested;
      } catch {
        return false;
      }
    },

    /**
     * The decrypted secrets that sign at `now`: the current one, and during a rotation the previous
     * one, unless it cannot be opened any more. Errors: `master_key_missing`, or the vault cannot
     * decrypt the current one.
     */
    signingSecrets: (
      webhookId: string,
      { secret, previousSecret, previousSecretUntil }: EncryptedSecrets,
      now: Date,
    ): string[] =>
      [
        secret,
        ...(previousSecret !== null &&
        previousSecretUntil !== null &&
        previousSecretUntil > now &&
        canOpen(webhookId, previousSecret)
          ? [previousSecret]
          : []),
      ].map((encrypted) => decrypt(webhookId, encrypted)),

    /** True if one of these was not encrypted with the current master key. */
    hasOutdated: ({ secret, previousSecret }: EncryptedSecrets): boolean =>
      [secret, previousSecret].some((text) => text !== null && !vault.isCurrent(text)),
  };
}
