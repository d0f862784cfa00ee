import { access } from 'node:fs/promises';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { request } from 'undici';
import { buildConsole } from '../../ui/build.ts';
import { startProduct } from '../fixture.ts';

/** Debian's browser, which `.ci/install-peers` installs. */
const CHROMIUM = '/usr/bin/chromium';
const PASSWORD = 'a password for the console';

export type Installation = Awaited<ReturnType<typeof startInstallation>>;

type Servers = Parameters<typeof startProduct>[0];
type Role = { roleId: string; siteId?: string };

/** The product with the console, and a browser. Error: there is no browser. */
export async function startInstallation(servers: Servers, env: Record<string, string> = {}) {
  await access(CHROMIUM).catch(() => {
    throw new Error(`${CHROMIUM} is missing; .ci/install-peers installs it.`);
  });
  await buildConsole();
  const product = await startProduct(servers, [], env);
  const origin = `http://127.0.0.1:${product.ready}`;
  // Chromium refuses its sandbox to root, as which containers run.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
  return {
    origin,
    /** Sends a request as a user; by default as an administrator whom a gateway names. */
    send: <T>(path: string, body?: object, as: Identity = ADMIN) => send<T>(origin, path, body, as),
    createUser: (username: string, displayName: string, ...roles: Role[]) =>
      createUser(origin, username, displayName, roles),
    open: (user: { username: string } | undefined, options?: BrowserContextOptions) =>
      open(browser, origin, user, options),
    async stop(): Promise<void> {
      await browser.close();
      await product.stop();
    },
  };
}

/** Who sends a request: whom a gateway names, or the user of a token. */
export type Identity = { actor: string; roles: string } | { token: string };

const ADMIN: Identity = { actor: 'bench', roles: 'platform-admin' };

async function send<T>(origin: string, path: string, body: object | undefined, as: Identity) {
  const identity: Record<string, string> =
    'token' in as
      ? { authorization: `Bearer ${as.token}` }
      : { 'x-service-actor-id': as.actor, 'x-service-role-ids': as.roles };
  const response = await request(`${origin}${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { 'content-type': 'application/json', ...identity },
    body: body ? JSON.stringify(body) : null,
  });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`${path} ${response.statusCode} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** Creates a local account with these roles. Returns its name and a token of a session. */
async function createUser(
  origin: string,
  username: string,
  displayName: string,
  roles: readonly Role[],
): Promise<{ id: string; username: string; token: string }> {
  const account = { username, displayName, password: PASSWORD, mustChangePassword: false };
  const { id } = await send<{ id: string }>(origin, '/api/users', account, ADMIN);
  for (const role of roles)
    await send(origin, '/api/rbac/assignments', { userId: id, ...role }, ADMIN);
  const login = { username, password: PASSWORD };
  const { accessToken } = await send<{ accessToken: string }>(
    origin,
    '/api/auth/login/local',
    login,
    { token: '' },
  );
  return { id, username, token: accessToken };
}

/** A page in a profile of its own, in which a user has signed in before. */
async function open(
  browser: Browser,
  origin: string,
  user: { username: string } | undefined,
  options: BrowserContextOptions = {},
): Promise<Page> {
  const context = await browser.newContext({ baseURL: origin, ...options });
  if (user !== undefined) {
    const login = { username: user.username, password: PASSWORD, cookie: true };
    const response = await context.request.post('/api/auth/login/local', { data: login });
    if (!response.ok()) throw new Error(`The login failed: ${await response.text()}`);
  }
  return context.newPage();
}
