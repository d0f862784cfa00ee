/** What is typed into the hidden field of a secret: nothing stays as it is, null takes the stored one away. */
export type Secrets = Readonly<Record<string, string | null | undefined>>;

type Config = Readonly<Record<string, unknown>>;

/** The configuration without its secrets, which the service only answers masked. */
export const withoutSecrets = (
  config: Config,
  secrets: readonly string[],
): Record<string, unknown> =>
  Object.fromEntries(Object.entries(config).filter(([name]) => !secrets.includes(name)));

/** The names of the secrets that the service has. */
export const storedSecrets = (config: Config, secrets: readonly { name: string }[]): string[] =>
  secrets
    .map(({ name }) => name)
    .filter((name) => config[name] !== undefined && config[name] !== null);

/** The typed secrets as a request has them; those that stay are not in it. */
export const secretsRequest = (secrets: Secrets): Record<string, string | null> =>
  Object.fromEntries(
    Object.entries(secrets).filter((entry): entry is [string, string | null] => {
      const [, value] = entry;
      return value === null || (value !== undefined && value !== '');
    }),
  );

/** The change of a configuration as a request has it: what is left out stays, and null takes a field away. */
export function configChange(config: Config, started: Config): Record<string, unknown> {
  const removed = Object.keys(started).filter((name) => config[name] === undefined);
  const changed = Object.entries(config).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(started[name]),
  );
  return {
    ...Object.fromEntries(changed),
    ...Object.fromEntries(removed.map((name) => [name, null])),
  };
}

/**
 * The part of a request that changes the configuration; nothing if it stays as it is, since changing it needs more
 * permissions than a name does, and a master key.
 */
export function configRequest(
  config: Config,
  started: Config,
  secrets: Secrets,
): { config?: Record<string, unknown> } {
  const change = { ...configChange(config, started), ...secretsRequest(secrets) };
  return Object.keys(change).length > 0 ? { config: change } : {};
}

/** Whether a change has one of these fields. */
export const changesAny = (change: Config, fields: readonly string[]): boolean =>
  fields.some((name) => name in change);
