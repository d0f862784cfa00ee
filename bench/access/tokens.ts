import { randomBytes } from 'node:crypto';
import { Agent, request } from 'undici';
import type { Knex } from '../../db/core/knex.ts';
import { tokenText } from '../../domain/auth/tokenText.ts';
import { hashToken } from '../../services/auth/hashToken.ts';
import { startProgram } from '../fixture.ts';
import { ms, quantile, type BenchResult } from '../report.ts';

const FEW = 10;
const MANY = 10_000;
const REQUESTS = 2_000;
const WARM_UP = 100;
const ROUNDS = 2;
const MAX_RATIO = 1.2;

/** Requests that only authenticate, with ten API tokens in the database and with 10,000. */
export async function measureTokens(
  db: Knex,
  env: Record<string, string>,
  userId: string,
): Promise<BenchResult[]> {
  const product = await startProgram(
    ['processes/main.ts'],
    { HOLDFAST_PORT: '0', HOLDFAST_ROLE: 'api', HOLDFAST_LOG_LEVEL: 'info', ...env },
    /"port":(\d+).*listening/,
  );
  const agent = new Agent({ connections: 1 });
  const few = await createTokens(db, userId, FEW);
  const durationsMs = { few: [] as number[], many: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const measure = (texts: readonly string[]) =>
      authenticate(`http://127.0.0.1:${product.ready}`, agent, texts);
    durationsMs.few.push(...(await measure(few)));
    const more = await createTokens(db, userId, MANY - FEW);
    durationsMs.many.push(...(await measure([...few, ...more])));
    await db('tokens')
      .whereNotIn(
        'hash',
        few.map((text) => hashToken(text)),
      )
      .delete();
    await db.raw('VACUUM ANALYZE tokens');
  }
  await agent.close();
  await product.stop();
  return [0.5, 0.99].map((q) => {
    const [few, many] = [quantile(durationsMs.few, q), quantile(durationsMs.many, q)];
    return {
      measure: `a request with one of 10,000 API tokens, p${q * 100}`,
      value: ms(many),
      reference: `${ms(few)} with ten tokens`,
      ratio: (many / few).toFixed(2),
      target: `≤ ${MAX_RATIO}`,
      met: many / few <= MAX_RATIO,
    };
  });
}

/** Inserts tokens of a user, and returns their texts. */
async function createTokens(db: Knex, userId: string, count: number): Promise<string[]> {
  const texts = Array.from({ length: count }, () => tokenText('personal', randomBytes(32)));
  const now = new Date();
  await db.batchInsert(
    'tokens',
    texts.map((text, i) => ({
      id: `tok_${count}_${i}_${now.getTime()}`,
      kind: 'personal',
      user_id: userId,
      tenant_id: 'platform',
      name: 'bench',
      hash: hashToken(text),
      read_only: false,
      request_tenant_id: 'platform',
      expires_at: new Date(now.getTime() + 86_400_000),
      created_by: 'bench',
      created_at: now,
      updated_at: now,
    })),
    1_000,
  );
  await db.raw('VACUUM ANALYZE tokens');
  return texts;
}

/** Sends requests one at a time, each with another token, and returns how long they took. */
async function authenticate(
  base: string,
  agent: Agent,
  texts: readonly string[],
): Promise<number[]> {
  const durationsMs: number[] = [];
  for (let n = 0; n < REQUESTS + WARM_UP; n++) {
    const text = texts[(n * 7_919) % texts.length] ?? '';
    const startedAt = performance.now();
    const answer = await request(`${base}/api/rbac/summary`, {
      dispatcher: agent,
      headers: { authorization: `Bearer ${text}` },
    });
    await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`The answer was ${answer.statusCode}`);
    if (n >= WARM_UP) durationsMs.push(performance.now() - startedAt);
  }
  return durationsMs;
}
