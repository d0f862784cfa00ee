import { networkProblem, Problem } from '../problem.ts';
import { broadcast, onMessage } from './channel.ts';
import { isHeldElsewhere, whenLeader, withLock } from './locks.ts';
import { exchangeCookie, isBehindGateway, post, tokenFrom, type Tokens } from './requests.ts';
import { sessionState, sessionStateWhere, setSessionState, type Token } from './state.ts';

const LEADER = 'holdfast-leader';
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
const leaderCallbacks: (() => void)[] = [];

/** Calls `callback` when this tab leads the tabs of the browser, now or later. */
export function onLeader(callback: () => void): void {
  if (isLeader) callback();
  else leaderCallbacks.push(callback);
}

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

type Returning = (token: Token) => Promise<boolean>;

let restoreSession: Returning = () => Promise.resolve(true);
/** How often a session could not be restored for the pages that waited for it. */
let losses = 0;

/**
 * Sets what makes a new session the one that the pages know: the user has signed in again, and nothing
 * that waits is sent before. Resolves with false if that was not possible.
 */
export const onReturn = (restore: Returning): void => void (restoreSession = restore);

/** The user has signed in again, here or in another tab. */
async function resume(token: Token): Promise<void> {
  const expired = sessionState();
  const isRestored = await restoreSession(token).catch(() => false);
  // The user has left the page, or has signed in once more.
  if (sessionState() !== expired) return;
  if (!isRestored) losses += 1;
  remember(true);
  setSessionState({ kind: 'signedIn', token });
  scheduleRefresh(token);
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
  timer = setTimeout(refreshInTime, Math.max(0, expiresAt - before - Date.now()));
}

/** Gets the next token; tries again while the server cannot be reached. */
function refreshInTime(): void {
  refresh(currentToken()).catch(() => {
    if (sessionState().kind === 'signedIn') timer = setTimeout(refreshInTime, RETRY_MS);
  });
}

const isFresh = ({ receivedAt, expiresAt }: Token): boolean =>
  expiresAt - Date.now() > Math.min(LEAD_MS, (expiresAt - receivedAt) / 2);

let refreshing: Promise<void> | undefined;

/**
 * Replaces the token `spent`, in one tab at a time, unless another tab has done so. Afterwards the
 * state says what has come of it. Error: Problem, if the server cannot answer now.
 */
function refresh(spent: Token | undefined): Promise<void> {
  refreshing ??= withLock(REFRESH, async () => {
    const known = currentToken();
    if (known !== undefined && known.value !== spent?.value && isFresh(known)) return;
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

/** Finds out who uses this browser. The state says what has come of it. */
export async function startSession(): Promise<void> {
  whenLeader(LEADER, () => {
    isLeader = true;
    const token = currentToken();
    if (token !== undefined && sessionState().kind === 'signedIn') scheduleRefresh(token);
    for (const callback of leaderCallbacks.splice(0)) callback();
  });
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
    const token = currentToken();
    const headers = token === undefined ? undefined : { authorization: `Bearer ${token.value}` };
    await post('/api/auth/logout', { everywhere }, headers).catch((error: unknown) => {
      // The session has ended already.
      if (!(error instanceof Problem) || error.status !== 401) throw error;
    });
    broadcast({ kind: 'signedOut' });
    leave();
  });

const withToken = (request: Request, { value }: Token): Request => {
  const copy = request.clone();
  copy.headers.set('authorization', `Bearer ${value}`);
  return copy;
};

const notSent = (code: string, title: string, detail: string): Problem =>
  new Problem({ status: 401, code, title, detail });

const isRead = ({ method }: Request): boolean => method === 'GET' || method === 'HEAD';

/** The token to send now. Waits while the session is unknown or has expired. Error: Problem. */
async function usableToken(request: Request): Promise<Token | undefined> {
  const before = losses;
  const state = await sessionStateWhere(
    (state) =>
      state.kind !== 'starting' && state.kind !== 'expired' && state.kind !== 'unreachable',
    request.signal,
  );
  if (state.kind === 'gateway') return undefined;
  if (state.kind !== 'signedIn') throw notSent('signed_out', 'Signed out', 'Nobody is signed in.');
  // It was made for another tenant.
  if (losses !== before && !isRead(request))
    throw notSent(
      'tenant_changed',
      'Not sent: the session has another tenant now',
      'Check the tenant above, then send it again.',
    );
  return state.token;
}

/**
 * `fetch` with the token of the session. A request that is refused because its token has expired is
 * sent again with the next one, if need be after the user has signed in again. Error: Problem.
 */
export async function authorizedFetch(request: Request): Promise<Response> {
  const token = await usableToken(request);
  if (token === undefined) return fetch(request);
  const response = await fetch(withToken(request, token));
  if (response.status !== 401 || !(await isAboutSession(response.clone()))) return response;
  await refresh(token);
  const next = await usableToken(request);
  return next === undefined ? response : fetch(withToken(request, next));
}

const isAboutSession = async (response: Response): Promise<boolean> => {
  const body = (await response.json().catch(() => undefined)) as { code?: string } | undefined;
  return body?.code === 'session_invalid';
};
