import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { ms, quantile, type BenchResult } from '../report.ts';

const FOLLOWERS = 500;
/** A caller has slots for a tenth of the streams of a process. */
const CALLERS = 10;
const EVENTS = 100;

type Follower = { received: number; lastAfterMs: number; stop(): void };

async function follow(port: string, dispatcher: Agent, n: number): Promise<Follower> {
  const stopping = new AbortController();
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/api/events?follow`, {
    dispatcher,
    signal: stopping.signal,
    headers: {
      'x-service-actor-id': `follower-${n % CALLERS}`,
      'x-service-role-ids': 'platform-admin',
      'x-service-tenant-id': 'platform',
    },
  });
  if (statusCode !== 200) throw new Error(`A stream was answered with ${statusCode}`);
  const follower = { received: 0, lastAfterMs: 0, stop: () => stopping.abort() };
  const opened = Promise.withResolvers<undefined>();
  body.on('error', () => undefined);
  body.on('data', (chunk: Buffer) => {
    opened.resolve(undefined);
    for (const [, createdAt] of chunk.toString().matchAll(/^data: .*"createdAt":"([^"]+)"/gm)) {
      follower.received += 1;
      follower.lastAfterMs = Date.now() - Date.parse(createdAt ?? '');
    }
  });
  await opened.promise;
  return follower;
}

/** Milliseconds from the commit of each event to the last of `count` followers. */
async function latencies(
  port: string,
  count: number,
  emit: (n: number) => Promise<unknown>,
): Promise<number[]> {
  const agent = new Agent({ connections: count });
  const followers = await Promise.all(
    Array.from({ length: count }, (_, n) => follow(port, agent, n)),
  );
  const found: number[] = [];
  for (let n = 1; n <= EVENTS; n++) {
    await emit(n);
    while (followers.some(({ received }) => received < n)) await sleep(1);
    found.push(Math.max(...followers.map(({ lastAfterMs }) => lastAfterMs)));
    await sleep(20 + Math.random() * 30);
  }
  for (const { stop } of followers) stop();
  await agent.destroy();
  return found;
}

/** Latency from the commit of an event to the last of many clients that follow the log. */
export async function measureFollowers(
  port: string,
  emit: (n: number) => Promise<unknown>,
): Promise<BenchResult> {
  const one = quantile(await latencies(port, 1, emit), 0.5);
  const many = quantile(await latencies(port, FOLLOWERS, emit), 0.5);
  return {
    measure: `event from commit to the last of ${FOLLOWERS} followers, p50`,
    value: ms(many),
    reference: `${ms(one)} one follower`,
    ratio: '',
    target: '',
    met: true,
  };
}
