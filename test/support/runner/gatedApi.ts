import { Agent, createServer, request as send, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../eventually.ts';

/** What a runner asks the API about one attempt, and when a request is held: before the API has it, or its answer. */
export const STEPS = ['begin', 'lines', 'artifacts', 'end'] as const;
export type Step = (typeof STEPS)[number];
export const SIDES = ['before', 'after'] as const;
export type Side = (typeof SIDES)[number];

type Gate = {
  step: Step;
  side: Side;
  isReached: boolean;
  opened: PromiseWithResolvers<'pass' | 'drop'>;
};

const PATH = new RegExp(`^/api/runner/jobs/([^/]+)/(${STEPS.join('|')})\\b`);

/**
 * An API in front of the API, for tests that stop a runner at a step of an attempt: requests and answers
 * are passed on, but for those that are held until they are passed or dropped.
 */
export async function startGatedApi(target: string) {
  let base = target;
  let isAway = false;
  let begins = Promise.withResolvers<undefined>();
  begins.resolve(undefined);
  /** By id of the job. */
  const gates = new Map<string, Gate>();
  const agent = new Agent();

  /** True if the message may pass. */
  async function pass(jobId: string, step: string, side: Side): Promise<boolean> {
    const gate = gates.get(jobId);
    if (!gate) return true;
    const isFirst = !gate.isReached && gate.step === step && gate.side === side;
    gate.isReached ||= isFirst;
    // A runner that has no answer asks again, and goes on: its attempt must not end before the gate opens.
    const isEnd = gate.isReached && step === 'end';
    return !(isFirst || isEnd) || (await gate.opened.promise) === 'pass';
  }

  const forward = ({ url, method, headers }: IncomingMessage, body: Buffer) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const options = { method, headers: { ...headers, connection: 'close' }, agent };
      send(new URL(url ?? '', base), options, resolve)
        .on('error', reject)
        .end(body);
    });

  const server = createServer((incoming, answer) => {
    const [, jobId = '', step = ''] = PATH.exec(incoming.url ?? '') ?? [];
    const handle = async () => {
      if (isAway) return answer.destroy();
      const body = await buffer(incoming);
      if (step === 'begin') await begins.promise;
      if (!(await pass(jobId, step, 'before'))) return answer.destroy();
      const received = await forward(incoming, body);
      const content = await buffer(received);
      if (!(await pass(jobId, step, 'after'))) return answer.destroy();
      const { 'content-type': type = 'text/plain' } = received.headers;
      return answer.writeHead(received.statusCode ?? 500, { 'content-type': type }).end(content);
    };
    handle().catch(() => answer.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  function openAll(how: 'pass' | 'drop'): void {
    for (const { opened } of gates.values()) opened.resolve(how);
    gates.clear();
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Jobs that are created from now on begin when the returned function is called. */
    pauseBegins(): () => void {
      const paused = Promise.withResolvers<undefined>();
      begins = paused;
      return () => paused.resolve(undefined);
    },
    /** Holds the first request of a step of a job, or the answer to it, and from then on the end of its attempt. */
    hold: (jobId: string, step: Step, side: Side): void =>
      void gates.set(jobId, { step, side, isReached: false, opened: Promise.withResolvers() }),
    /** Resolves when all requests and answers that are to be held are held. */
    untilHeld: () =>
      eventually(
        () => [...gates.values()].filter(({ isReached }) => !isReached),
        (missing) => missing.length === 0,
        { withinMs: 12_000 },
      ),
    pass: (): void => openAll('pass'),
    /** Breaks the connections of what is held, as the end of the API or of the runner would. */
    drop: (): void => openAll('drop'),
    /** Drops what is held, and refuses all requests for this time. */
    async awayFor(ms: number): Promise<void> {
      isAway = true;
      openAll('drop');
      await sleep(ms);
      isAway = false;
    },
    /** The API to which requests go from now on. */
    forwardTo(next: string): void {
      base = next;
    },
    async stop(): Promise<void> {
      begins.resolve(undefined);
      openAll('drop');
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
