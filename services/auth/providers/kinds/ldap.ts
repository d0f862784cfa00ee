import { randomBytes } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Client, Entry } from 'ldapts';
import {
  parseExternalId,
  firstNonEmptyText,
  parseGroups,
  MAX_GROUPS,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import { counted } from '../../../../domain/shared/counted.ts';
import { hostOf, portOf, type AddressGuard } from '../../../../platform/addressGuard.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import { createStepRunner, runConnectionSteps } from './kind.ts';
import type { LdapConfig } from './ldapConfig.ts';

/** Escapes a value for a search filter (RFC 4515, 3). */
const escapeFilter = (value: string): string =>
  value.replace(
    // oxlint-disable-next-line no-control-regex -- NUL is one of the characters that the RFC names
    /[\\*()\u0000]/g,
    (character) => `\\${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );

const fillTemplate = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    return value === undefined ? whole : escapeFilter(value);
  });

/** Loaded on first use, since most processes connect to no directory. */
const loadLibrary = () => import('ldapts');
type Library = Awaited<ReturnType<typeof loadLibrary>>;

/** Limit of a whole connection, as a multiple of the limit of one request. */
const MAX_EXCHANGES = 4;

/** Bytes that a directory may send on one connection; 1,000 groups have about 100 KiB. */
const MAX_RECEIVED_BYTES = 2 * 1_048_576;
const RECEIVED_CHECK_MS = 20;

/** Milliseconds that a server has to receive the unbind request before its socket is closed. */
const UNBIND_GRACE_MS = 500;

/** Whether these bytes are one whole message, as the library reads them. */
function isOneMessage({ BerReader }: Library, bytes: Buffer): boolean {
  const reader = new BerReader(bytes);
  return reader.readSequence() !== null && reader.length === reader.remain;
}

/**
 * Sockets of one connection to a directory. ldapts reconnects by itself; this refuses to after
 * `close`, and refuses a second plain connection, which would not be protected by StartTLS. TLS
 * begins only if the answer to StartTLS is all that has arrived before: ldapts would read what
 * follows it, which anyone on the path can insert, as the beginning of what arrives protected.
 */
function createConnections(guard: AddressGuard, library: Library) {
  const sockets: net.Socket[] = [];
  const receivedPlain: Buffer[] = [];
  let plainConnections = 0;
  let closed = false;
  const track = <S extends net.Socket>(open: () => S): S => {
    if (closed) throw new Error('The connection is closed.');
    const socket = open();
    sockets.push(socket);
    return socket;
  };
  const destroy = () => sockets.forEach((socket) => socket.destroy());
  return {
    connectPlain(port: number, host: string): net.Socket {
      plainConnections += 1;
      if (plainConnections > 1) throw new Error('The directory closed the connection.');
      const socket = track(() => net.connect({ port, host, lookup: guard.lookupFor(port) }));
      return socket.on('data', (chunk: Buffer) => receivedPlain.push(chunk));
    },
    connectTls(...args: Parameters<typeof tls.connect>): tls.TLSSocket {
      if (plainConnections > 0 && !isOneMessage(library, Buffer.concat(receivedPlain)))
        throw new Error('The directory sent more than the answer to StartTLS before TLS.');
      return track(() => tls.connect(...args));
    },
    receivedBytes: (): number => Math.max(0, ...sockets.map(({ bytesRead }) => bytesRead)),
    destroy,
    close(): void {
      closed = true;
      setTimeout(destroy, UNBIND_GRACE_MS).unref();
    },
  };
}

/** Login with LDAP: search the person with the bind account, then bind as the person. */
export function createLdap(outbound: ProviderOutbound) {
  /** Runs `use` with a TLS connection that is limited in time and closed afterwards. */
  async function withConnection<T>(
    config: LdapConfig,
    guard: AddressGuard,
    use: (client: Client) => Promise<T>,
  ): Promise<T> {
    const url = new URL(config.url);
    const [host, port] = [hostOf(url), portOf(url)];
    guard.requirePermitted(host, port);
    const usesLdaps = config.url.startsWith('ldaps:');
    if (!usesLdaps && !config.startTls)
      throw new Error('Passwords must not be sent without TLS: use ldaps:// or startTls.');
    const tlsOptions: tls.ConnectionOptions = {
      ...(config.caCertificate !== undefined && { ca: config.caCertificate }),
      ...(net.isIP(host) ? {} : { servername: host }),
      lookup: guard.lookupFor(port),
      host,
    };
    const library = await loadLibrary();
    const connections = createConnections(guard, library);
    const client = new library.Client({
      url: config.url,
      timeout: config.timeoutMs,
      connectTimeout: config.timeoutMs,
      strictDN: false,
      // With `tlsOptions`, ldapts starts TLS immediately, which is wrong for StartTLS.
      ...(usesLdaps && { tlsOptions }),
      createConnection: connections.connectPlain as typeof net.connect,
      createSecureConnection: connections.connectTls as typeof tls.connect,
    });
    const limitMs = MAX_EXCHANGES * config.timeoutMs;
    const work = async () => {
      if (!usesLdaps) await client.startTLS(tlsOptions);
      return use(client);
    };
    let timer: NodeJS.Timeout | undefined;
    let sizeTimer: NodeJS.Timeout | undefined;
    // ldapts limits each request, but neither the TLS handshake nor what a directory sends.
    const limits = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`The directory did not answer within ${limitMs} ms.`)),
        limitMs,
      );
      sizeTimer = setInterval(() => {
        if (connections.receivedBytes() > MAX_RECEIVED_BYTES) {
          connections.destroy();
          reject(new Error(`The directory sent more than ${MAX_RECEIVED_BYTES} bytes.`));
        }
      }, RECEIVED_CHECK_MS);
    });
    try {
      return await Promise.race([work(), limits]);
    } finally {
      clearTimeout(timer);
      clearInterval(sizeTimer);
      connections.close();
      // Not awaited: a server that does not read must not block the caller.
      void client.unbind().catch(() => undefined);
    }
  }

  const bindForSearch = async (
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
        filter: fillTemplate(config.userFilter, { username }),
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
        // Exceeding the size limit means that several entries match.
        if (resultCode(error) === SIZE_LIMIT_EXCEEDED) return { searchEntries: [] };
        throw error;
      });
    // With several matches it is unknown whose password was entered, so nobody is signed in.
    return searchEntries.length === 1 ? searchEntries[0] : undefined;
  }

  async function findGroups(
    client: Client,
    config: LdapConfig,
    person: Entry,
    username: string,
  ): Promise<string[]> {
    if (config.groupBaseDn === undefined) {
      const { memberOfBaseDn: base } = config;
      const groups = valuesOf(person, 'memberOf');
      const counted = base === undefined ? groups : groups.filter((dn) => isBelow(dn, base));
      return parseGroups(counted.map((dn) => rdnsOf(dn)[0]?.[0]?.value ?? dn));
    }
    const { searchEntries } = await client.search(config.groupBaseDn, {
      scope: 'sub',
      filter: fillTemplate(config.groupFilter, { dn: person.dn, username }),
      sizeLimit: MAX_GROUPS,
      derefAliases: 'never',
      attributes: [config.groupNameAttribute],
    });
    return parseGroups(
      searchEntries.flatMap((group) => valuesOf(group, config.groupNameAttribute)),
    );
  }

  const profileOf = (
    config: LdapConfig,
    person: Entry,
    enteredUsername: string,
    groups: string[],
  ): Profile => {
    const [key] = valuesOf(person, config.idAttribute);
    if (key === undefined) throw new Error(`The entry has no attribute ${config.idAttribute}.`);
    const externalId = parseExternalId(key);
    const username =
      firstNonEmptyText(...valuesOf(person, config.usernameAttribute)) ?? enteredUsername;
    return {
      externalId,
      username,
      groups,
      displayName: firstNonEmptyText(...valuesOf(person, config.displayNameAttribute)) ?? username,
      email: firstNonEmptyText(...valuesOf(person, config.emailAttribute)) ?? null,
    };
  };

  return {
    /**
     * Verifies a password and returns the profile. Errors: `SignInRefused` for a wrong name or
     * password; others if the directory is not available.
     */
    async authenticate(config: LdapConfig, username: string, password: string): Promise<Profile> {
      // A bind without a password always succeeds (RFC 4513, 5.1.2).
      if (password === '') throw new SignInRefused('the password is empty');
      const guard = outbound.guardFor(config);
      return withConnection(config, guard, async (searching) => {
        await bindForSearch(searching, config);
        const person = await findPerson(searching, config, username);
        // An unknown name costs a bind too, so that the response time does not reveal accounts.
        const dn = person?.dn ?? `cn=${randomBytes(8).toString('hex')},${config.userBaseDn}`;
        await withConnection(config, guard, async (binding) => {
          await binding.bind(dn, password).catch((error: unknown) => {
            const isRefused = person
              ? CREDENTIAL_ERRORS.has(resultCode(error))
              : !isOutage(resultCode(error));
            throw isRefused
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

    /**
     * Tests resolving, connecting, TLS, bind and search. With a user name it searches that person.
     */
    async test(
      config: LdapConfig,
      username: string | undefined,
    ): Promise<{ steps: TestStep[]; groups?: string[] }> {
      const { steps, step } = createStepRunner();
      const guard = outbound.guardFor(config);
      await runConnectionSteps(step, config.url, guard, config.timeoutMs, config.caCertificate);
      if (!config.url.startsWith('ldaps:')) {
        // Any search triggers the connection; the root entry is readable by everyone.
        await step('tls', () =>
          withConnection(config, guard, (client) =>
            client
              .search('', { scope: 'base', attributes: ['1.1'] })
              .then(() => ({ message: 'StartTLS works and the certificate is trusted.' })),
          ),
        );
      }
      await step('bind', () =>
        withConnection(config, guard, async (client) => {
          await bindForSearch(client, config).catch((error: unknown) => {
            throw resultCode(error) === INVALID_CREDENTIALS
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
        withConnection(config, guard, async (client) => {
          await bindForSearch(client, config);
          if (username === undefined) {
            await client.search(config.userBaseDn, { scope: 'base', attributes: ['1.1'] });
            return { message: `${config.userBaseDn} can be searched.` };
          }
          const person = await findPerson(client, config, username);
          if (!person)
            throw new Error(
              `Not exactly one entry matches ${fillTemplate(config.userFilter, { username })}.`,
            );
          const profile = profileOf(
            config,
            person,
            username,
            await findGroups(client, config, person, username),
          );
          return {
            message: `Found ${person.dn} with ${counted(profile.groups.length, 'group')}.`,
            value: profile.groups,
          };
        }),
      );
      return { steps, ...(groups && { groups }) };
    },
  };
}

/** LDAP result code of an error (RFC 4511, A.1), or -1. Errors of the connection have texts as codes. */
function resultCode(error: unknown): number {
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : NO_RESULT;
}

const NO_RESULT = -1;
const BUSY = 51;
const UNAVAILABLE = 52;

/** True if the directory has not answered, or could not: nothing is known of the password then. */
const isOutage = (code: number): boolean => [NO_RESULT, BUSY, UNAVAILABLE].includes(code);

const SIZE_LIMIT_EXCEEDED = 4;
const INVALID_CREDENTIALS = 49;

/**
 * Result codes (RFC 4511, A.1) for wrong credentials and for locked, expired or password-less
 * accounts. All are reported as a failed login, since other errors would reveal that the account
 * exists.
 */
const CREDENTIAL_ERRORS: ReadonlySet<number> = new Set([19, 48, INVALID_CREDENTIALS, 50, 53]);

/**
 * Values of an attribute as text, binary ones in hexadecimal. Attribute names are case-insensitive.
 */
function valuesOf(entry: Entry, attribute: string): string[] {
  const name = Object.keys(entry).find((key) => key.toLowerCase() === attribute.toLowerCase());
  const value = name === undefined ? [] : entry[name];
  return (Array.isArray(value) ? value : [value]).flatMap((each) =>
    each === undefined ? [] : [Buffer.isBuffer(each) ? each.toString('hex') : each],
  );
}

/** A part of a DN: one attribute with its value, or several (`ou=groups+l=x`). */
type Rdn = { type: string; value: string }[];

/**
 * The parts of a DN, from the entry to the root: `cn=Network Team,ou=groups,…` → `cn`, `Network Team`;
 * `ou`, `groups`; … Escapes are bytes (RFC 4514, 2.4).
 */
const rdnsOf = (dn: string): Rdn[] =>
  piecesOf(dn, /(?:\\.|[^,\\])+/gsu).map((part) => piecesOf(part, /(?:\\.|[^+\\])+/gsu).map(avaOf));

const piecesOf = (text: string, pattern: RegExp): string[] => text.match(pattern) ?? [];

function avaOf(text: string): Rdn[number] {
  const [, type = '', value = text] = /^([^=]+)=(.*)$/su.exec(text) ?? [];
  const bytes = [...value.matchAll(/\\([0-9A-Fa-f]{2})|\\(.)|([^\\]+)/gsu)].map(
    ([, hex, escaped, plain]) =>
      hex === undefined ? Buffer.from(escaped ?? plain ?? '') : Buffer.from(hex, 'hex'),
  );
  return {
    type: type.trim().toLowerCase(),
    value: Buffer.concat(bytes).toString('utf8').trim(),
  };
}

/** True when an entry is somewhere below `base`; servers do not distinguish case in DNs. */
function isBelow(dn: string, base: string): boolean {
  const keysOf = (name: string) =>
    rdnsOf(name).map((rdn) =>
      rdn.map(({ type, value }) => `${type}=${value.toLowerCase()}`).sort(),
    );
  const [entry, ancestor] = [keysOf(dn), keysOf(base)];
  return (
    entry.length > ancestor.length && isDeepStrictEqual(entry.slice(-ancestor.length), ancestor)
  );
}
