import { copyFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { startTemporal, type TemporalServer } from '../../dev/temporal.ts';

type Options = Parameters<typeof startTemporal>[0];

const CHECK_MS = 5_000;
/** A busy machine may delay an answer; a server that is stuck has none. */
const ANSWER_MS = 20_000;
const CHECKS_WITHOUT_ANSWER = 2;
/** Go writes where each goroutine waits when it gets SIGQUIT, and ends. */
const DUMP_MS = 5_000;
const MAX_RESTARTS = 3;

/** In Jest's first process, where the global setup and the runner are modules of their own. */
type State = { restarts: number; check: PromiseWithResolvers<void> | undefined };
const state = ((globalThis as { holdfastTemporal?: State }).holdfastTemporal ??= {
  restarts: 0,
  check: undefined,
});

function endCheck(next?: PromiseWithResolvers<void>): void {
  state.check?.resolve();
  state.check = next;
}

/** How often the server has been started again. */
export const temporalRestarts = (): number => state.restarts;

/** Resolves when the server, if one runs, has answered the next time, after a restart if it needs one. */
export const nextTemporalCheck = async (): Promise<void> => state.check?.promise;

/**
 * Starts the Temporal server of the tests, and starts it again on the same files if it ends or no longer answers: the
 * product waits for Temporal, so each later test would run into its time limit. What the server has written is kept in
 * the folder for temporary files. Resolves with a function that stops it.
 */
export async function keepTemporal(options: Options): Promise<() => Promise<void>> {
  let server = await startTemporal(options);
  const stop = new AbortController();
  endCheck(Promise.withResolvers());
  const kept = keep()
    .catch((error: unknown) => say(`is not watched any more: ${String(error)}`))
    .finally(() => endCheck());

  async function keep(): Promise<void> {
    while (!stop.signal.aborted) {
      const reason = await failure(server, stop.signal);
      if (reason === undefined) return;
      await server.child.stop(DUMP_MS, 'SIGQUIT');
      const log = path.join(os.tmpdir(), `holdfast-test-temporal-${Date.now()}.log`);
      await copyFile(options.logFile, log);
      say(`${reason}; its log is ${log}`);
      if (state.restarts >= MAX_RESTARTS) return;
      server = await startTemporal(options);
      state.restarts += 1;
    }
  }

  return async () => {
    stop.abort();
    await kept;
    await server.stop();
  };
}

const say = (what: string) => process.stderr.write(`The tests' Temporal server ${what}\n`);

/** Resolves when the server has failed, with how; undefined when `signal` is aborted. */
async function failure({ address, child }: TemporalServer, signal: AbortSignal) {
  const connection = Connection.lazy({ address });
  let ended: string | undefined;
  void child.ended.then((how) => (ended = how));
  const answers = () =>
    connection
      .withDeadline(Date.now() + ANSWER_MS, () =>
        connection.workflowService.listWorkflowExecutions({ namespace: 'default', pageSize: 1 }),
      )
      .then(
        () => true,
        () => false,
      );
  try {
    for (let missed = 0; missed < CHECKS_WITHOUT_ANSWER;) {
      await sleep(CHECK_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return undefined;
      if (ended !== undefined) return ended;
      const passed = await answers();
      if (passed) endCheck(Promise.withResolvers());
      missed = passed ? 0 : missed + 1;
    }
    return `has not answered ${CHECKS_WITHOUT_ANSWER} questions`;
  } finally {
    await connection.close();
  }
}
