import { networkProblem, Problem } from '../problem.ts';
import { queryClient } from '../queryClient.ts';
import { broadcast, onMessage } from './channel.ts';
import { idleMs, watchInput } from './input.ts';
import { compete, isHeldElsewhere, withLock } from './locks.ts';
import {
  exchangeCookie,
  isBehindGateway,
  isSessionInvalid,
  post,
  putTenant,
  tokenFrom,
  type Tokens,
} from './requests.ts';
import {
  onSessionState,
  sessionState,
  sessionStateWhere,
  setSessionState,
  type Token,
} from './state.ts';
import { shownTenant, TENANT_HEADER } from './tenant.ts';
import { serverNow } from '../../parts/clock.ts';
import { serverFetch } from '../serverFetch.ts';

const LEADER = 'holdfast-leader';
/** The leader of the tabs behind a gateway, which have no token that a new tab must wait for. */
const GATEWAY_LEADER = 'holdfast-gateway-leader';
const REFRESH = 'holdfast-refresh';

/** How long before the expiry of a token the leading tab gets the next one, and another tab helps itself. */
const LEAD_MS = 60_000;
const HELP_MS = 10_000;
/** A new tab waits for as long for the token of the others. */
const HELLO_MS = 500;
const RETRY_MS = 3_000;

/** Remembers whether a session probably exists: then a page need not first ask for a gateway. */
const HINT = 'holdfast-signed-in';

let isLeader = false;
let timer: ReturnType<typeof setTimeout> | undefined;
const leaderCallbacks: ((leads: boolean) => void)[] = [];

/** Calls `callback` whenever this tab becomes the one that leads the tabs of the browser, and when it no longer is. */
export const onLeader = (callback: (leads: boolean) => void): void =>
  void leaderCallbacks.push(callback);

function remember(isSignedIn: boolean): void {
  try {
    if (isSignedIn) localStorage.setItem(HINT, '1');
    else localStorage.removeItem(HINT);
  } catch {
    // Storage is disabled: the page asks once more.
  }
}

function isRemembered(): boolean {
  try {
    return localStorage.getItem(HINT) !== null;
  } catch {
    return false;
  }
}

const currentToken = (): Token | undefined => {
  const state = sessionState();
  return 'token' in state ? state.token : undefined;
};

/** The user has signed in again, here or in another tab: the new session gets the tenant of the pages. */
async function resume(token: Token): Promise<void> {
  const expired = sessionState();
  const tenantId = shownTenant();
  // If it cannot, the pages show the tenant that the session has.
  if (tenantId !== undefined) await putTenant(tenantId, token.value).catch(() => undefined);
  // The user has left the page, or has signed in once more.
  if (sessionState() !== expired) return;
  remember(true);
  setSessionState({ kind: 'signedIn', token });
  scheduleRefresh(token);
  void queryClient.invalidateQueries({ queryKey: ['session'] });
}

/** Continues with a new token, unless it is that of another account than the pages in this tab. */
function accept(token: Token, isFromElsewhere = false): void {
  const known = currentToken();
  if (known !== undefined && known.userId !== token.userId) {
    clearTimeout(timer);
    setSessionState({ kind: 'otherUser', token: known });
    return;
  }
  if (sessionState().kind === 'expired') {
    void resume(token);
    return;
  }
  // A message may be late. What this tab has got itself is the newest, whatever the clock says.
  if (isFromElsewhere && known !== undefined && known.receivedAt > token.receivedAt) return;
  remember(true);
  setSessionState({ kind: 'signedIn', token });
  scheduleRefresh(token);
}

/** The session has ended. Pages that are open stay as they are. */
function end(token: Token | undefined): void {
  clearTimeout(timer);
  const state = sessionState();
  if (token !== undefined && currentToken()?.value !== token.value) return;
  if (state.kind === 'signedIn') setSessionState({ kind: 'expired', token: state.token });
  else if (state.kind !== 'expired' && state.kind !== 'otherUser') leave();
}

/** Shows the sign-in page. */
function leave(): void {
  clearTimeout(timer);
  remember(false);
  setSessionState({ kind: 'signedOut' });
}

function scheduleRefresh({ receivedAt, expiresAt }: Token): void {
  clearTimeout(timer);
  const lifetime = expiresAt - receivedAt;
  const before = isLeader ? Math.min(LEAD_MS, lifetime / 2) : Math.min(HELP_MS, lifetime / 8);
  timer = setTimeout(refreshInTime, Math.max(0, expiresAt - before - serverNow()));
}

/** Gets the next token; tries again while the server cannot be reached. */
function refreshInTime(): void {
  refresh(currentToken()).catch(() => {
    if (sessionState().kind === 'signedIn') timer = setTimeout(refreshInTime, RETRY_MS);
  });
}

const isFresh = ({ receivedAt, expiresAt }: Token): boolean =>
  expiresAt - serverNow() > Math.min(LEAD_MS, (expiresAt - receivedAt) / 2);

let refreshing: Promise<void> | undefined;

/**
 * Replaces the token `spent`, in one tab at a time, unless another tab has done so. Afterwards the
 * state says what has come of it. Error: Problem, if the server cannot answer now.
 */
function refresh(spent: Token | undefined): Promise<void> {
  refreshing ??= withLock(REFRESH, async () => {
    const known = currentToken();
    if (known !== undefined && known.value !== spent?.value && isFresh(known)) return;
    if (known !== undefined && idleMs() > known.maxIdleMs) {
      await endIdle(known);
      return;
    }
    const tokens = await exchangeCookie();
    if (tokens !== undefined) {
      take(tokens);
      return;
    }
    if (known !== undefined) broadcast({ kind: 'expired', token: known });
    end(known);
  }).finally(() => (refreshing = undefined));
  return refreshing;
}

/** Nobody has used the pages for as long as a session may be idle: they do not keep it. Error: Problem. */
async function endIdle(token: Token): Promise<void> {
  await logOut(token).catch((error: unknown) => {
    if (!isSessionInvalid(error)) throw error;
  });
  broadcast({ kind: 'expired', token });
  end(token);
}

const logOut = (token: Token | undefined, everywhere = false): Promise<unknown> =>
  post(
    '/api/auth/logout',
    { everywhere },
    token === undefined ? undefined : { authorization: `Bearer ${token.value}` },
  );

function take(tokens: Tokens): void {
  const token = tokenFrom(tokens);
  accept(token);
  broadcast({ kind: 'token', token });
}

onMessage((message) => {
  const { kind } = sessionState();
  if (kind === 'gateway') return;
  if (message.kind === 'token') accept(message.token, true);
  else if (message.kind === 'expired') end(message.token);
  else if (message.kind === 'signedOut' && kind !== 'starting') leave();
  else if (message.kind === 'hello' && isLeader && kind === 'signedIn')
    broadcast({ kind: 'token', token: (sessionState() as { token: Token }).token });
});

/** Asks the other tabs for their token. Resolves when there is one, or after a moment. */
async function askOtherTabs(): Promise<void> {
  broadcast({ kind: 'hello' });
  await sessionStateWhere(
    (state) => state.kind !== 'starting',
    AbortSignal.timeout(HELLO_MS),
  ).catch(() => undefined);
}

function setLeader(leads: boolean): void {
  isLeader = leads;
  const state = sessionState();
  if (state.kind === 'signedIn') scheduleRefresh(state.token);
  for (const callback of leaderCallbacks) callback(leads);
}

let stopCompeting: (() => void) | undefined;

/** A tab without a user, or with a page of another user, would lead the others nowhere. */
function leadWhileSignedIn(): void {
  const { kind } = sessionState();
  if (kind === 'signedIn' || kind === 'expired') stopCompeting ??= compete(LEADER, setLeader);
  else if (kind === 'gateway') stopCompeting ??= compete(GATEWAY_LEADER, setLeader);
  else {
    stopCompeting?.();
    stopCompeting = undefined;
  }
}

/** Finds out who uses this browser. The state says what has come of it. */
export async function startSession(): Promise<void> {
  watchInput();
  onSessionState(leadWhileSignedIn);
  document.addEventListener('visibilitychange', () => {
    // Timers rest while a machine sleeps.
    const state = sessionState();
    if (document.visibilityState === 'visible' && state.kind === 'signedIn')
      scheduleRefresh(state.token);
  });
  await findSession();
}

/** Also for another attempt after the server could not be reached. */
export async function findSession(): Promise<void> {
  setSessionState({ kind: 'starting' });
  try {
    if (await isHeldElsewhere(LEADER, isLeader)) await askOtherTabs();
    if (sessionState().kind !== 'starting') return;
    const wasSignedIn = isRemembered();
    if (wasSignedIn) await refresh(undefined);
    // The state has changed during the wait.
    if (sessionState().kind === 'signedIn') return;
    if (await isBehindGateway()) setSessionState({ kind: 'gateway' });
    else if (!wasSignedIn) await refresh(undefined);
  } catch (error) {
    const { detail } = error instanceof Problem ? error : networkProblem(error);
    if (sessionState().kind === 'starting') setSessionState({ kind: 'unreachable', detail });
  }
}

/** Leaves the page of an expired session, to sign in as another user. */
export const leaveSession = (): void => leave();

export type Login = { username: string; password: string; tenantId?: string; providerId?: string };

/** Signs in with a password. Returns the user. Error: Problem. */
export async function signIn(kind: 'local' | 'ldap', login: Login): Promise<Tokens['user']> {
  const tokens = await post<Tokens>(`/api/auth/login/${kind}`, { ...login, cookie: true });
  take(tokens);
  return tokens.user;
}

/** Starts a login at an identity provider. Returns the address to go to. Error: Problem. */
export async function startSso(
  kind: 'oidc' | 'saml',
  start: { providerId: string; returnTo: string; failureTo: string },
): Promise<string> {
  const path = `/api/auth/login/${kind}/start`;
  return (await post<{ redirectUrl: string }>(path, start)).redirectUrl;
}

/** Ends the session, in all tabs. Not during a refresh, which would sign them in again. Error: Problem. */
export const signOut = ({ everywhere = false } = {}): Promise<void> =>
  withLock(REFRESH, async () => {
    await logOut(currentToken(), everywhere).catch((error: unknown) => {
      // The session has ended already.
      if (!isSessionInvalid(error)) throw error;
    });
    broadcast({ kind: 'signedOut' });
    leave();
  });

/** What a request is sent with: a token, and the tenant that the page showed when it was made. */
type Sender = { token: Token; tenantId: string | undefined };

const withSender = (request: Request, { token, tenantId }: Sender): Request => {
  const copy = request.clone();
  copy.headers.set('authorization', `Bearer ${token.value}`);
  if (tenantId !== undefined) copy.headers.set(TENANT_HEADER, tenantId);
  return copy;
};

const changesRecords = ({ method, url, headers }: Request): boolean =>
  method !== 'GET' &&
  method !== 'HEAD' &&
  !headers.has(TENANT_HEADER) &&
  // What belongs to the account belongs to no tenant.
  !new URL(url).pathname.startsWith('/api/auth/');

/** The token to send now. Waits while the session is unknown or has expired. Error: Problem. */
async function usableToken(signal: AbortSignal): Promise<Token | undefined> {
  const state = await sessionStateWhere(
    (state) =>
      state.kind !== 'starting' && state.kind !== 'expired' && state.kind !== 'unreachable',
    signal,
  );
  if (state.kind === 'gateway') return undefined;
  if (state.kind === 'signedIn') return state.token;
  throw new Problem({
    status: 401,
    code: 'signed_out',
    title: 'Signed out',
    detail: 'Nobody is signed in.',
  });
}

/**
 * `fetch` with the token of the session. A request that is refused because its token has expired is
 * sent again with the next one, if need be after the user has signed in again. What it changes is in the
 * tenant that the page shows now: until it is sent, the session may have got another one. `send` is how it
 * is sent. Error: Problem.
 */
export async function authorizedFetch(
  request: Request,
  send: (request: Request) => Promise<Response> = serverFetch,
): Promise<Response> {
  const tenantId = changesRecords(request) ? shownTenant() : undefined;
  const token = await usableToken(request.signal);
  if (token === undefined) {
    // The gateway says which tenant it is.
    request.headers.delete(TENANT_HEADER);
    return send(request);
  }
  const response = await send(withSender(request, { token, tenantId }));
  if (response.status !== 401 || !(await isAboutSession(response.clone()))) return response;
  await refresh(token);
  const next = await usableToken(request.signal);
  return next === undefined ? response : send(withSender(request, { token: next, tenantId }));
}

const isAboutSession = async (response: Response): Promise<boolean> => {
  const body = (await response.json().catch(() => undefined)) as { code?: string } | undefined;
  return body?.code === 'session_invalid';
};
