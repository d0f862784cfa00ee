import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestApp } from '../app.ts';
import type { TestClient } from '../client.ts';
import { seededRandom } from '../estate.ts';
import { createUser } from '../users.ts';
import type { Operation } from './document.ts';
import type { createExchange } from './exchange.ts';
import type { createJudge } from './judge.ts';
import type { Failure } from './report.ts';
import { buildRequest, mistakesOf, type Mistake, type ValidRequest } from './requests.ts';
import { bodyMaker, findIds } from './targets.ts';

const CONCURRENCY = 8;

/** Classes of mistakes that every position gets in every run: the ones that went wrong most often. */
const ALWAYS = new Set(['null', 'text: NUL byte']);

/** Reads first, then what creates, changes and acts; deletions last. */
function rankOf({ method, path, requiresSession }: Operation): number {
  if (method === 'GET') return 0;
  if (path.startsWith('/api/backup/restore')) return 4;
  if (method === 'DELETE') return 5;
  if (requiresSession) return 4;
  if (method === 'PUT') return 2;
  return path.includes('{') ? 3 : 1;
}

export const inOrder = (operations: readonly Operation[]): Operation[] =>
  [...operations].sort((a, b) => rankOf(a) - rankOf(b));

/** The same number for the same text (FNV-1a). */
const hashOf = (text: string): number =>
  [...Buffer.from(text)].reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5);

/**
 * Chooses `perPosition` mistakes of each position, besides those that are always made, and of these the `share`; the same
 * ones in every run.
 */
function choose(
  mistakes: readonly Mistake[],
  operation: Operation,
  { perPosition, share }: Amount,
): Mistake[] {
  const byPosition = Map.groupBy(mistakes, ({ position, group }) => group ?? position);
  return [...byPosition].flatMap(([position, all]) => {
    const random = seededRandom(hashOf(`${operation.name} ${position}`));
    const shuffled = all
      .map((mistake) => ({ mistake, order: random() }))
      .sort((a, b) => a.order - b.order)
      .map(({ mistake }) => mistake);
    const always = shuffled.filter(({ kind }) => ALWAYS.has(kind));
    const drawn = shuffled.filter(({ kind }) => !ALWAYS.has(kind)).slice(0, perPosition);
    return [...drawn, ...always].filter(() => random() < share);
  });
}

/** How many mistakes are made in each position of a request, and which share of all those. */
export type Amount = { perPosition: number; share: number };

/** Logging out is public: a session is all that it takes. */
const endsSessions = ({ requiresSession, path }: Operation): boolean =>
  requiresSession || path === '/api/auth/logout';

/** Parameters without which a request ends early. */
const QUERIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/api/inventory/import': { resource: 'tags' },
  '/api/rbac/explain': { userId: 'usr_01k8qzj3m5x7c9v1b3n5m7q9w1', permission: 'job:write' },
};

/** Pages are kept short, since every mistake beside the page gets one. */
const queryOf = ({ path, parameters }: Operation): Readonly<Record<string, string>> =>
  QUERIES[path] ?? (parameters.some(({ name }) => name === 'limit') ? { limit: '3' } : {});

type Campaign = {
  app: TestApp;
  exchange: ReturnType<typeof createExchange>;
  judge: ReturnType<typeof createJudge>;
  amount: Amount;
};

/** Who makes the requests: an administrator, or a user with rights at one site. */
export type Attacker = 'administrator' | { headers: Readonly<Record<string, string>> };

/** Every attacker makes the same mistakes. */
const mistakesByOperation = new WeakMap<Operation, readonly Mistake[]>();

/** Makes mistakes in requests of one operation and returns what was wrong with the answers. */
export async function attackOperation(
  { app, exchange, judge, amount }: Campaign,
  operation: Operation,
  attacker: Attacker,
): Promise<Failure[]> {
  // An actor of its own: requests that another operation made can be decided.
  const actor = `tester-${hashOf(operation.name) >>> 0}`;
  const administrator = gatewayClient(app, actor);
  const session = endsSessions(operation) ? await sessionOf(app) : undefined;
  const ids = await findIds(session?.client() ?? administrator, operation);
  const makeBody = await bodyMaker(administrator, operation);
  const waits = operation.path.startsWith('/api/backup/restore');
  const failures: Failure[] = [];

  const make = async ({ position, kind, apply }: Mistake, n: number): Promise<void> => {
    const valid: ValidRequest = {
      params: paramsOf(operation, ids, n),
      query: queryOf(operation),
      headers: {
        ...(session
          ? await session.headers()
          : attacker === 'administrator'
            ? administrator.identity
            : attacker.headers),
        // Nothing runs in the background: it would wait for long.
        ...(waits && { prefer: 'wait=1' }),
        // Attempts to sign in are counted by address.
        'x-forwarded-for': `203.0.113.${n % 250}`,
      },
      body: makeBody(n + 1),
    };
    const request = apply(valid);
    const answer = await exchange.send(request);
    const status = answer.failure === undefined ? answer.status : 0;
    if (status < 300 && operation.method !== 'GET') session?.renew();
    for (const finding of judge(operation, answer))
      failures.push({ operation: operation.name, position, kind, request, ...finding });
  };
  const unchanged: Mistake = {
    position: 'nowhere',
    kind: 'valid',
    apply: (valid) => buildRequest(operation, valid),
  };
  const mistakes = mistakesByOperation.get(operation) ?? mistakesOf(operation);
  mistakesByOperation.set(operation, mistakes);
  const possible = mistakes.filter(({ position }) => position !== 'header Prefer' || !waits);
  const chosen = [unchanged, ...choose(possible, operation, amount)];
  const queue = chosen.entries();
  const work = async () => {
    for (const [n, mistake] of queue) await make(mistake, n);
  };
  await Promise.all(Array.from({ length: session ? 1 : CONCURRENCY }, work));
  return failures;
}

const gatewayClient = (app: TestApp, actor: string): TestClient =>
  app.client.as({ actor, roles: 'platform-admin,approver', tenant: 'platform' });

function paramsOf({ path }: Operation, ids: readonly string[], n: number): Record<string, string> {
  const [, name] = /\{(\w+)\}/.exec(path) ?? [];
  return name === undefined ? {} : { [name]: ids[n % ids.length] ?? 'none' };
}

/** A session that is started again when an answer may have ended it. */
async function sessionOf(app: TestApp) {
  let user = await createUser(app, 'platform-admin');
  let isStale = false;
  return {
    client: () => user.client,
    async headers() {
      if (isStale) user = await createUser(app, 'platform-admin');
      isStale = false;
      return assertDefined(user.client.identity, 'identity');
    },
    renew: () => {
      isStale = true;
    },
  };
}
