import { randomBytes } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import type { Client, Entry } from 'ldapts';
import { Type, type Static } from 'typebox';
import {
  externalIdFrom,
  firstText,
  groupsFrom,
  MAX_GROUPS,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import { hostOf, notAllowed, type AddressGuard } from '../../../../platform/addressGuard.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import { createSteps, reachSteps, type Kind } from './kind.ts';

const Dn = (description: string) => Type.String({ minLength: 1, maxLength: 1_024, description });
const AttributeName = (byDefault: string, description: string) =>
  Type.String({ pattern: '^[A-Za-z][A-Za-z0-9;-]{0,63}$', default: byDefault, description });
const LdapFilter = (byDefault: string, description: string) =>
  Type.String({ pattern: '^\\(.+\\)$', maxLength: 1_024, default: byDefault, description });

const LdapConfig = Type.Object(
  {
    url: Type.String({
      pattern: '^ldaps?://[^/?#@\\\\]+$',
      maxLength: 255,
      description: 'ldaps://host[:port], or ldap:// with startTls.',
    }),
    startTls: Type.Boolean({
      default: false,
      description: 'Turns an ldap:// connection into TLS before anything is sent.',
    }),
    caCertificate: Type.Optional(
      Type.String({
        maxLength: 65_536,
        description: 'PEM of the authority of a private directory.',
      }),
    ),
    allowPrivateNetwork: Type.Boolean({
      default: false,
      description: 'The directory is at a private or loopback address.',
    }),
    bindDn: Type.Optional(Dn('Account that searches; without it the search is anonymous.')),
    bindPassword: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1_024, description: 'Secret.' }),
    ),
    userBaseDn: Dn('Where people are.'),
    userFilter: LdapFilter(
      '(uid={username})',
      'Finds one person; {username} is what was typed, escaped.',
    ),
    idAttribute: AttributeName(
      'entryUUID',
      'What never changes of a person: entryUUID, objectGUID.',
    ),
    usernameAttribute: AttributeName('uid', 'Shown as the user name.'),
    displayNameAttribute: AttributeName('cn', 'Shown as the name.'),
    emailAttribute: AttributeName('mail', 'E-mail address.'),
    groupBaseDn: Type.Optional(
      Dn('Where groups are; without it the attribute memberOf of the person is used.'),
    ),
    groupFilter: LdapFilter(
      '(member={dn})',
      "Finds the person's groups; {dn} and {username} are escaped.",
    ),
    groupNameAttribute: AttributeName('cn', 'The name of a group that mappings use.'),
    timeoutMs: Type.Integer({
      minimum: 500,
      maximum: 30_000,
      default: 5_000,
      description: 'Limit of one exchange.',
    }),
  },
  { additionalProperties: false, title: 'LdapConfig' },
);
export type LdapConfig = Static<typeof LdapConfig>;

export const ldapKind: Kind = {
  kind: 'ldap',
  config: LdapConfig,
  secrets: ['bindPassword'],
  destinations: ['url', 'caCertificate', 'allowPrivateNetwork', 'startTls'],
  faults: ({ url, startTls }) =>
    String(url).startsWith('ldap:') && startTls !== true
      ? [
          {
            pointer: '/startTls',
            code: 'tls',
            message: 'is needed with ldap://: without TLS passwords would be readable on the way',
          },
        ]
      : [],
};

/** A value inside a search filter (RFC 4515, 3). */
const escapeFilter = (value: string): string =>
  // eslint-disable-next-line no-control-regex -- NUL is one of the characters that the RFC names
  value.replace(
    /[\\*()\u0000]/g,
    (character) => `\\${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );

const fill = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? escapeFilter(values[name] ?? '') : whole,
  );

/** Loaded when it is needed: most processes talk to no directory. */
const library = () => import('ldapts');

/** One connection may last this many times the limit of one exchange. */
const WHOLE_EXCHANGES = 4;

/** How long a server has to take note of the end. */
const UNBIND_MS = 500;

/**
 * The sockets of one use of a directory. The library connects again by itself: never when the use is over, and never a
 * second time in the clear.
 */
function createConnections(guard: AddressGuard) {
  const sockets: net.Socket[] = [];
  let raws = 0;
  let closed = false;
  const kept = <S extends net.Socket>(open: () => S): S => {
    if (closed) throw new Error('The connection is closed.');
    const socket = open();
    sockets.push(socket);
    return socket;
  };
  return {
    raw(port: number, host: string): net.Socket {
      raws += 1;
      if (raws > 1) throw new Error('The directory closed the connection.');
      return kept(() => net.connect({ port, host, lookup: guard.lookup }));
    },
    secure: (...args: Parameters<typeof tls.connect>): tls.TLSSocket =>
      kept(() => tls.connect(...args)),
    close(): void {
      closed = true;
      setTimeout(() => sockets.forEach((socket) => socket.destroy()), UNBIND_MS).unref();
    },
  };
}

/** Signs people in against a directory: search with one account, then bind as the person. */
export function createLdap(outbound: ProviderOutbound) {
  /** A connection under TLS, bounded as a whole; whatever `use` does, it is closed. */
  async function connected<T>(
    config: LdapConfig,
    guard: AddressGuard,
    use: (client: Client) => Promise<T>,
  ): Promise<T> {
    const host = hostOf(new URL(config.url));
    if (net.isIP(host) && !guard.permits(host)) throw notAllowed(host);
    const secure = config.url.startsWith('ldaps:');
    if (!secure && !config.startTls)
      throw new Error(
        'Without TLS passwords would be readable on the way: use ldaps:// or startTls.',
      );
    const tlsOptions: tls.ConnectionOptions = {
      ...(config.caCertificate !== undefined && { ca: config.caCertificate }),
      ...(net.isIP(host) ? {} : { servername: host }),
      lookup: guard.lookup,
      host,
    };
    const connections = createConnections(guard);
    const { Client: LdapClient } = await library();
    const client = new LdapClient({
      url: config.url,
      timeout: config.timeoutMs,
      connectTimeout: config.timeoutMs,
      strictDN: false,
      // The library takes TLS options for a wish to begin with TLS.
      ...(secure && { tlsOptions }),
      createConnection: connections.raw as typeof net.connect,
      createSecureConnection: connections.secure as typeof tls.connect,
    });
    const limitMs = WHOLE_EXCHANGES * config.timeoutMs;
    const work = async () => {
      if (!secure) await client.startTLS(tlsOptions);
      return use(client);
    };
    let timer: NodeJS.Timeout | undefined;
    // The library bounds each request, but not a TLS handshake that never ends.
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`The directory did not answer within ${limitMs} ms.`)),
        limitMs,
      );
    });
    try {
      return await Promise.race([work(), late]);
    } finally {
      clearTimeout(timer);
      connections.close();
      // A server that reads nothing must not hold it up either.
      void client.unbind().catch(() => undefined);
    }
  }

  const bindToSearch = async (
    client: Client,
    { bindDn, bindPassword }: LdapConfig,
  ): Promise<void> => {
    if (bindDn !== undefined) await client.bind(bindDn, bindPassword ?? '');
  };

  async function findPerson(
    client: Client,
    config: LdapConfig,
    username: string,
  ): Promise<Entry | undefined> {
    const { searchEntries } = await client
      .search(config.userBaseDn, {
        scope: 'sub',
        filter: fill(config.userFilter, { username }),
        sizeLimit: 2,
        derefAliases: 'never',
        attributes: [
          ...new Set([
            config.idAttribute,
            config.usernameAttribute,
            config.displayNameAttribute,
            config.emailAttribute,
            'memberOf',
          ]),
        ],
        explicitBufferAttributes: ['objectGUID'],
      })
      .catch((error: unknown) => {
        // More than the limit is as good as more than one.
        if (codeOf(error) === SIZE_LIMIT_EXCEEDED) return { searchEntries: [] };
        throw error;
      });
    // Two that match are nobody: which one typed the password cannot be told.
    return searchEntries.length === 1 ? searchEntries[0] : undefined;
  }

  async function findGroups(
    client: Client,
    config: LdapConfig,
    person: Entry,
    username: string,
  ): Promise<string[]> {
    if (config.groupBaseDn === undefined)
      return groupsFrom(valuesOf(person, 'memberOf').map(firstNameInDn));
    const { searchEntries } = await client.search(config.groupBaseDn, {
      scope: 'sub',
      filter: fill(config.groupFilter, { dn: person.dn, username }),
      sizeLimit: MAX_GROUPS,
      derefAliases: 'never',
      attributes: [config.groupNameAttribute],
    });
    return groupsFrom(searchEntries.flatMap((group) => valuesOf(group, config.groupNameAttribute)));
  }

  const profileOf = (
    config: LdapConfig,
    person: Entry,
    typed: string,
    groups: string[],
  ): Profile => {
    const [key] = valuesOf(person, config.idAttribute);
    if (key === undefined) throw new Error(`The entry has no attribute ${config.idAttribute}.`);
    const externalId = externalIdFrom(key);
    const username = firstText(...valuesOf(person, config.usernameAttribute)) ?? typed;
    return {
      externalId,
      username,
      groups,
      displayName: firstText(...valuesOf(person, config.displayNameAttribute)) ?? username,
      email: firstText(...valuesOf(person, config.emailAttribute)) ?? null,
    };
  };

  return {
    /**
     * Checks a password. Errors: `SignInRefused` for a wrong name or password; others when the directory cannot
     * be asked.
     */
    async authenticate(config: LdapConfig, username: string, password: string): Promise<Profile> {
      // A bind without a password succeeds for everybody (RFC 4513, 5.1.2).
      if (password === '') throw new SignInRefused('the password is empty');
      const guard = outbound.guardFor(config);
      return connected(config, guard, async (searching) => {
        await bindToSearch(searching, config);
        const person = await findPerson(searching, config, username);
        // Somebody unknown costs a bind too, so that the time does not tell.
        const dn = person?.dn ?? `cn=${randomBytes(8).toString('hex')},${config.userBaseDn}`;
        await connected(config, guard, async (binding) => {
          await binding.bind(dn, password).catch((error: unknown) => {
            throw REFUSALS.has(codeOf(error)) || !person
              ? new SignInRefused(person ? `wrong password for ${person.dn}` : 'unknown')
              : error;
          });
        });
        if (!person) throw new SignInRefused('unknown');
        return profileOf(
          config,
          person,
          username,
          await findGroups(searching, config, person, username),
        );
      });
    },

    /** Connects, binds and searches, step by step; with a user name it looks that person up. */
    async test(
      config: LdapConfig,
      username: string | undefined,
    ): Promise<{ steps: TestStep[]; groups?: string[] }> {
      const { steps, step } = createSteps();
      const guard = outbound.guardFor(config);
      await reachSteps(step, config.url, guard, config.timeoutMs, config.caCertificate);
      if (!config.url.startsWith('ldaps:')) {
        // The root is there for everybody; asking for nothing still needs the connection.
        await step('tls', () =>
          connected(config, guard, (client) =>
            client
              .search('', { scope: 'base', attributes: ['1.1'] })
              .then(() => ({ message: 'StartTLS works and the certificate is trusted.' })),
          ),
        );
      }
      await step('bind', () =>
        connected(config, guard, async (client) => {
          await bindToSearch(client, config).catch((error: unknown) => {
            throw codeOf(error) === INVALID_CREDENTIALS
              ? new Error('The directory refuses bindDn with bindPassword.')
              : error;
          });
          return {
            message:
              config.bindDn === undefined
                ? 'The search is anonymous.'
                : `Bound as ${config.bindDn}.`,
          };
        }),
      );
      const groups = await step('search', () =>
        connected(config, guard, async (client) => {
          await bindToSearch(client, config);
          if (username === undefined) {
            await client.search(config.userBaseDn, { scope: 'base', attributes: ['1.1'] });
            return { message: `${config.userBaseDn} can be searched.` };
          }
          const person = await findPerson(client, config, username);
          if (!person)
            throw new Error(
              `Not exactly one entry matches ${fill(config.userFilter, { username })}.`,
            );
          const profile = profileOf(
            config,
            person,
            username,
            await findGroups(client, config, person, username),
          );
          return {
            message: `Found ${person.dn} with ${profile.groups.length} groups.`,
            value: profile.groups,
          };
        }),
      );
      return { steps, ...(groups && { groups }) };
    },
  };
}

/** The result code of a directory's refusal (RFC 4511, A.1), or -1 for other errors. */
const codeOf = (error: unknown): number => (error as { code?: number }).code ?? -1;

const SIZE_LIMIT_EXCEEDED = 4;
const INVALID_CREDENTIALS = 49;

/**
 * Result codes (RFC 4511, A.1) with which directories refuse locked, expired or password-less accounts; anything else
 * would tell a stranger that the account is there.
 */
const REFUSALS: ReadonlySet<number> = new Set([19, 48, INVALID_CREDENTIALS, 50, 53]);

/** An attribute's values as text; binary ones in hexadecimal. LDAP knows no case in names of attributes. */
function valuesOf(entry: Entry, attribute: string): string[] {
  const name = Object.keys(entry).find((key) => key.toLowerCase() === attribute.toLowerCase());
  const value = name === undefined ? [] : entry[name];
  return (Array.isArray(value) ? value : [value]).flatMap((each) =>
    each === undefined ? [] : [Buffer.isBuffer(each) ? each.toString('hex') : each],
  );
}

/** `cn=Network Team,ou=groups,…` → `Network Team`: the value of the first part of a DN (RFC 4514, 2.4: escapes are bytes). */
function firstNameInDn(dn: string): string {
  const value = /^[^=]+=((?:\\.|[^,+\\])*)/.exec(dn)?.[1] ?? dn;
  const bytes = [...value.matchAll(/\\([0-9A-Fa-f]{2})|\\(.)|([^\\]+)/gsu)].map(
    ([, hex, escaped, plain]) =>
      hex === undefined ? Buffer.from(escaped ?? plain ?? '') : Buffer.from(hex, 'hex'),
  );
  return Buffer.concat(bytes).toString('utf8').trim();
}
