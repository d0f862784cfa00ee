import { networkProblem, Problem, problemOf } from '../problem.ts';
import type { Token } from './state.ts';
import { serverNow } from '../../parts/clock.ts';
import { serverFetch } from '../serverFetch.ts';

/** The answer of a login or a refresh, as far as the session needs it. */
export type Tokens = {
  accessToken: string;
  expiresIn: number;
  /** until 0.4: it is required; answers of 0.2.0 do not have it. */
  refreshExpiresIn?: number;
  user: { id: string; mustChangePassword: boolean };
};

export const tokenFrom = ({
  accessToken,
  expiresIn,
  refreshExpiresIn = Infinity,
  user,
}: Tokens): Token => {
  const now = serverNow();
  return {
    value: accessToken,
    userId: user.id,
    receivedAt: now,
    expiresAt: now + expiresIn * 1_000,
    maxIdleMs: refreshExpiresIn * 1_000,
  };
};

/** Sends a request without a token. Error: Problem. */
export async function send<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await serverFetch(path, init).catch((error: unknown) => {
    throw error instanceof Problem ? error : networkProblem(error);
  });
  const text = await response.text();
  const body = parse(text);
  if (!response.ok) throw problemOf(response, body);
  return body as T;
}

function parse(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const post = <T>(
  path: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<T> =>
  send(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/** Sets the tenant of the session of `token`. Error: Problem. */
export const putTenant = (tenantId: string, token: string): Promise<unknown> =>
  send('/api/auth/session', {
    method: 'PUT',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ tenantId }),
  });

/** True if Holdfast says that the session has ended. The 401 of a proxy says nothing about it. */
export const isSessionInvalid = (error: unknown): error is Problem =>
  error instanceof Problem && error.code === 'session_invalid';

/** True if the page is not under the address of the server: cookies and sign-ins belong to that. */
const isOtherOrigin = (error: unknown): boolean =>
  error instanceof Problem && error.errors.some(({ code }) => code === 'origin');

const REPEATS = 3;

/**
 * Exchanges the cookie for new tokens. The request outlives the page, so that the browser stores the
 * next cookie even if the page is reloaded before the answer. Undefined: there is no session at this address. Errors:
 * Problem, for anything that does not mean that the session has ended.
 */
export async function exchangeCookie(): Promise<Tokens | undefined> {
  for (let repeat = 0; ; repeat += 1) {
    try {
      return await send<Tokens>('/api/auth/refresh', { method: 'POST', keepalive: true });
    } catch (error) {
      // The sign-in says at which address it is.
      if (isOtherOrigin(error)) return undefined;
      if (!isSessionInvalid(error)) throw error;
      // The cookie was replaced moments ago; the browser has the next one now, or will have it soon.
      if (error.retryAfterSeconds === undefined || repeat === REPEATS) return undefined;
      await new Promise((resolve) => setTimeout(resolve, 300 * (repeat + 1)));
    }
  }
}

/** True if Holdfast accepts requests without a token, since a gateway authenticates them. Error: Problem. */
export async function isBehindGateway(): Promise<boolean> {
  try {
    await send('/api/rbac/summary');
    return true;
  } catch (error) {
    if (error instanceof Problem && (error.status === 401 || error.status === 403)) return false;
    throw error;
  }
}
