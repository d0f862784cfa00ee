import type { Provider } from '../../../db/models/Provider.ts';
import { invalidFields, type FieldError } from '../../../domain/shared/errors.ts';
import { MASK } from '../../../domain/shared/mask.ts';
import type { ProviderKind } from '../../../domain/auth/providers.ts';
import { compileCheck, type SchemaCheck } from '../../../platform/schemaCheck.ts';
import type { Vault } from '../../../platform/vault.ts';
import { KIND_DEFINITIONS } from './kinds/index.ts';

/** Fields of all kinds that must be URLs. */
const URL_FIELDS = ['url', 'issuer', 'entryPoint', 'metadataUrl'];

type Config = Record<string, unknown>;

/** The context in which the vault encrypts a secret field of a provider. */
export const providerContext = (id: string, field: string): string => `provider:${id}:${field}`;

/** Validates configurations of providers, and encrypts their secrets. */
export function createProviderConfig(vault: Vault) {
  const schemaChecks = new Map<ProviderKind, SchemaCheck>(
    Object.values(KIND_DEFINITIONS).map(({ kind, config }) => [kind, compileCheck(config)]),
  );

  /**
   * The configuration with decrypted secrets, for code that connects to the provider. Error:
   * `master_key_missing`.
   */
  const openConfig = ({
    id,
    config,
    secrets,
  }: Pick<Provider, 'id' | 'config' | 'secrets'>): Config => ({
    ...config,
    ...Object.fromEntries(
      Object.entries(secrets).map(([field, sealed]) => [
        field,
        vault.open(sealed, providerContext(id, field)),
      ]),
    ),
  });

  /** Error: `invalid_request` at each secret that a change keeps and no master key opens. */
  function assertReadable(id: string, kept: Readonly<Record<string, string>>): void {
    const unreadable = Object.entries(kept)
      .filter(([field, sealed]) => !vault.canOpen(sealed, providerContext(id, field)))
      .map(([field]) => field);
    if (unreadable.length > 0)
      throw mustBeSentAgain(unreadable, 'no master key opens the stored one');
  }

  /** Validates a configuration and applies defaults. Error: `invalid_request` under `/config`. */
  function checkConfig(kind: ProviderKind, config: Config): Config {
    const checked = structuredClone(config);
    const urls = Object.entries(checked).filter(
      ([field, value]) =>
        URL_FIELDS.includes(field) && typeof value === 'string' && !URL.canParse(value),
    );
    const errors = [
      ...(schemaChecks.get(kind)?.(checked) ?? []),
      ...urls.map(([field]) => ({ pointer: `/${field}`, code: 'format', message: 'is not a URL' })),
      ...(KIND_DEFINITIONS[kind].validate?.(checked) ?? []),
    ];
    if (errors.length > 0) {
      throw invalidFields(
        errors.map((e): FieldError => ({ ...e, in: 'body', pointer: `/config${e.pointer}` })),
      );
    }
    return checked;
  }

  /** Separates the secret fields from a configuration and encrypts them. */
  function sealSecrets(
    id: string,
    kind: ProviderKind,
    config: Config,
  ): { config: Config; secrets: Record<string, string> } {
    const isSecret = (field: string) => KIND_DEFINITIONS[kind].secrets.includes(field);
    const entries = Object.entries(config);
    return {
      config: Object.fromEntries(entries.filter(([field]) => !isSecret(field))),
      secrets: Object.fromEntries(
        entries
          .filter(([field]) => isSecret(field))
          .map(([field, value]) => [field, vault.seal(String(value), providerContext(id, field))]),
      ),
    };
  }

  /**
   * Applies a change to a configuration: fields replace existing ones, null removes a field, the
   * mask keeps a secret. A secret that is replaced or removed is not opened. Errors: as for
   * `checkConfig` and `assertReadable`.
   */
  function merge(
    known: Provider,
    patch: Config,
  ): { config: Config; secrets: Record<string, string> } {
    const { secrets: secretFields, destinations } = KIND_DEFINITIONS[known.kind];
    const change = Object.fromEntries(
      Object.entries(patch).filter(
        ([field, value]) => !(secretFields.includes(field) && value === MASK),
      ),
    );
    const kept = Object.fromEntries(
      Object.entries(known.secrets).filter(([field]) => !(field in change)),
    );
    assertReadable(known.id, kept);
    const before = openConfig({ id: known.id, config: known.config, secrets: kept });
    const merged = Object.fromEntries(
      Object.entries({ ...before, ...change }).filter(([, value]) => value !== null),
    );
    const checked = checkConfig(known.kind, merged);
    const destinationChanged = destinations.some(
      (field) => JSON.stringify(known.config[field]) !== JSON.stringify(checked[field]),
    );
    // Otherwise an administrator could send a secret that they do not know to their own server.
    if (destinationChanged && Object.keys(kept).length > 0)
      throw mustBeSentAgain(
        Object.keys(kept),
        'the server or the way to connect to it has changed',
      );
    return sealSecrets(known.id, known.kind, checked);
  }

  return { openConfig, checkConfig, sealSecrets, merge };
}

const mustBeSentAgain = (fields: readonly string[], reason: string) =>
  invalidFields(
    fields.map((field) => ({
      in: 'body',
      pointer: `/config/${field}`,
      code: 'required',
      message: `must be sent again, because ${reason}`,
    })),
  );
