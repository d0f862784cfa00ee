import type { Provider } from '../../../db/models/Provider.ts';
import { invalidFields, type FieldError } from '../../../domain/shared/errors.ts';
import { MASK } from '../../../domain/mask.ts';
import type { ProviderKind } from '../../../domain/auth/providers.ts';
import { compileCheck, type Check } from '../../../platform/schemaCheck.ts';
import type { Vault } from '../../../platform/vault.ts';
import { KINDS } from './kinds/index.ts';

/** Fields of any kind that hold an address. */
const URL_FIELDS = ['url', 'issuer', 'entryPoint', 'metadataUrl'];

type Config = Record<string, unknown>;

/** Checks the configuration of providers, and keeps its secrets sealed. */
export function createProviderConfig(vault: Vault) {
  const checks = new Map<ProviderKind, Check>(
    Object.values(KINDS).map(({ kind, config }) => [kind, compileCheck(config)]),
  );

  const contextOf = (id: string, field: string) => `provider:${id}:${field}`;

  /** The whole configuration, secrets opened: for the code that talks to the provider, and for nobody else. */
  const openConfig = ({ id, config, secrets }: Provider): Config => ({
    ...config,
    ...Object.fromEntries(
      Object.entries(secrets).map(([field, sealed]) => [
        field,
        vault.open(sealed, contextOf(id, field)),
      ]),
    ),
  });

  /** Checks a configuration and fills in its defaults. Error: `invalid_request` under `/config`. */
  function checkConfig(kind: ProviderKind, config: Config): Config {
    const checked = structuredClone(config);
    const urls = Object.entries(checked).filter(
      ([field, value]) =>
        URL_FIELDS.includes(field) && typeof value === 'string' && !URL.canParse(value),
    );
    const errors = [
      ...(checks.get(kind)?.(checked) ?? []),
      ...urls.map(([field]) => ({ pointer: `/${field}`, code: 'format', message: 'is not a URL' })),
      ...(KINDS[kind].faults?.(checked) ?? []),
    ];
    if (errors.length > 0) {
      throw invalidFields(
        errors.map((e): FieldError => ({ ...e, in: 'body', pointer: `/config${e.pointer}` })),
      );
    }
    return checked;
  }

  /** Splits a configuration into what is kept as it is and what is sealed. */
  function split(
    id: string,
    kind: ProviderKind,
    config: Config,
  ): { config: Config; secrets: Record<string, string> } {
    const isSecret = (field: string) => KINDS[kind].secrets.includes(field);
    const entries = Object.entries(config);
    return {
      config: Object.fromEntries(entries.filter(([field]) => !isSecret(field))),
      secrets: Object.fromEntries(
        entries
          .filter(([field]) => isSecret(field))
          .map(([field, value]) => [field, vault.seal(String(value), contextOf(id, field))]),
      ),
    };
  }

  /** The configuration after a change: fields given replace those there, null takes one away, the mask keeps a secret. */
  function merge(
    known: Provider,
    given: Config,
  ): { config: Config; secrets: Record<string, string> } {
    const { secrets: secretFields, destinations } = KINDS[known.kind];
    const before = openConfig(known);
    const change = Object.fromEntries(
      Object.entries(given).filter(
        ([field, value]) => !(secretFields.includes(field) && value === MASK),
      ),
    );
    const merged = Object.fromEntries(
      Object.entries({ ...before, ...change }).filter(([, value]) => value !== null),
    );
    const checked = checkConfig(known.kind, merged);
    const moved = destinations.some(
      (field) => JSON.stringify(before[field]) !== JSON.stringify(checked[field]),
    );
    const kept = secretFields.filter((field) => field in checked && !(field in change));
    // A secret must not go to a server that somebody else than its owner has named.
    if (moved && kept.length > 0) {
      throw invalidFields(
        kept.map((field) => ({
          in: 'body',
          pointer: `/config/${field}`,
          code: 'required',
          message:
            'must be given again, since the server, or how it is reached or trusted, has changed',
        })),
      );
    }
    return split(known.id, known.kind, checked);
  }

  return { openConfig, checkConfig, split, merge };
}
