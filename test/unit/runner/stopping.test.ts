import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StopRequest } from '../../../runner/command/attempt.ts';
import { graceLeftMs } from '../../../runner/command/runCommand.ts';
import {
  FORCE_AFTER_MS,
  runnerStopRequest,
  stopRequest,
  temporalStopRequest,
} from '../../../runner/activity.ts';
import { KILL_SHARE, STOP_SHARE } from '../../../runner/protocol/attemptReport.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';
import { eventually } from '../../support/eventually.ts';
import {
  createDeclaredTypes,
  isRunning,
  type DeclaredTypes,
} from '../../support/runner/declared.ts';

let types: DeclaredTypes;

beforeAll(async () => void (types = await createDeclaredTypes()));
afterAll(() => types.remove());

/** Starts children in all ways that leave their parent, and prints their ids; the first two stay in the group. */
const startChildren = (to = '') => `
  sleep 600 & echo "child $!" ${to}
  (sleep 600 & echo "child $!" ${to})
  setsid bash -c 'echo "child $$" ${to}; exec sleep 600' &
  setsid bash -c 'trap "" TERM; echo "child $$" ${to}; exec sleep 600 >/dev/null 2>&1 </dev/null' &
  trap '' TERM`;

/** Starts a child without anything of the run in its environment; only its shim can find it. */
const startHidden = (to = '') => `
  (setsid env -i PATH=$PATH bash -c '(echo "child $BASHPID" ${to}; exec sleep 600) & disown') &`;

const WAIT = `
  while true; do sleep 600; done`;
const CHILD_COUNT = 5;

const childrenIn = (text: string): number[] =>
  [...text.matchAll(/^child (\d+)$/gm)].map(([, id]) => Number(id));

const STOP = { signal: 'SIGTERM', graceSeconds: 0.2 };

async function expectAllEnded(text: string) {
  const children = childrenIn(text);
  expect(children).toHaveLength(CHILD_COUNT);
  for (const id of children) expect(await isRunning(id)).toBe(false);
}

test('a command that has ended leaves no process, whatever it has started', async () => {
  const { result, text } = await types.script(`
    exec 9>> $HOME/ids
    ${startChildren('>&9')} ${startHidden('>&9')}
    until [ "$(grep -c . $HOME/ids)" = ${CHILD_COUNT} ]; do sleep 0.02; done; cat $HOME/ids`);
  expect(result).toEqual({});
  await expectAllEnded(text);
});

/** Runs a script and aborts it when all its children have said their id. */
async function stopRunning(script: string, reason: unknown) {
  const stop = new AbortController();
  let seen = '';
  const outcome = await types.script(script, {
    fields: { stop: STOP },
    signal: stop.signal,
    onLine(message) {
      seen += `${message}\n`;
      if (childrenIn(seen).length === CHILD_COUNT) stop.abort(reason);
    },
  });
  return outcome;
}

const OBSTINATE = startChildren() + startHidden() + WAIT;
/** The last child is the command itself. */
const VISIBLE = `${startChildren()}
  echo "child $$"${WAIT}`;

test('a cancelled command that ignores the signal is killed with everything that it has started', async () => {
  const reason = new Error('cancelled');
  const { error, text } = await stopRunning(OBSTINATE, reason);
  expect(error).toBe(reason);
  expect(text).toMatch(/did not end within 200 ms of SIGTERM/);
  await expectAllEnded(text);
});

test('a runner that loses its lease can shorten the grace period', async () => {
  const { error, text } = await types.script('echo "ready"; trap "" TERM; sleep 600', {
    fields: { stop: { graceSeconds: 300 } },
    ...abortAt('ready', new StopRequest('lost', { maxGraceMs: 10 })),
  });
  expect(error).toMatchObject({ message: 'lost' });
  expect(text).toMatch(/within 10 ms/);
});

test('a runner that stops lets commands end in order, within the time that it has itself', () => {
  const graceMs = (details?: Partial<Parameters<typeof temporalStopRequest>[0]>) =>
    temporalStopRequest({ cancelRequested: false, workerShutdown: false, ...details })?.maxGraceMs;
  // Ten seconds are what commands have that declare nothing; reporting takes some more.
  expect(graceMs({ workerShutdown: true })).toBeGreaterThan(10_000);
  expect(graceMs({ workerShutdown: true })).toBeLessThan(FORCE_AFTER_MS - 5_000);
  expect(graceMs({ cancelRequested: true, workerShutdown: true })).toBe(Infinity);
});

test('a command has no longer to end itself than the API waits for the end of its attempt', () => {
  expect(graceLeftMs(600_000, 1_000)).toBeGreaterThan(300_000);
  // After its limit, or a cancellation just before it, and with the time that the report takes.
  expect(graceLeftMs(600_000, 600_000)).toBe(45_000);
  expect(graceLeftMs(600_000, 700_000)).toBe(0);
});

test('only an attempt that the runner stops in order is interrupted; others count', () => {
  const codeOf = (details?: Partial<Parameters<typeof temporalStopRequest>[0]>) =>
    temporalStopRequest({ cancelRequested: false, workerShutdown: false, ...details })?.code;
  expect(codeOf({ workerShutdown: true })).toBe('interrupted');
  expect(codeOf()).toBeUndefined();
  expect(codeOf({ cancelRequested: true, workerShutdown: true })).toBe('cancelled');
  expect(
    ['lease', 'lost', 'cancelled'].map((each) => stopRequest(each as 'lost', 5_000).code),
  ).toEqual(['attempt_lost', 'attempt_lost', 'cancelled']);
});

test('a command that loses its lease is killed before another attempt may begin', () => {
  const lostAfterMs = 5_000;
  const { maxGraceMs } = stopRequest('lease', lostAfterMs);
  expect(lostAfterMs * STOP_SHARE + maxGraceMs).toBeLessThan(lostAfterMs * KILL_SHARE);
  expect(stopRequest('lease', 600_000).maxGraceMs).toBe(3_000);
  expect(stopRequest('lost', lostAfterMs).maxGraceMs).toBe(3_000);
  expect(stopRequest('cancelled', lostAfterMs).maxGraceMs).toBe(Infinity);
});

/** Options that abort a run at its line `message`. */
function abortAt(message: string, reason: unknown) {
  const stop = new AbortController();
  return {
    signal: stop.signal,
    onLine: (line: string) => void (line === message && stop.abort(reason)),
  };
}

test('a command can end in order when it is asked to stop, and its outcome does not count', async () => {
  const { error, text } = await types.script(
    'trap "echo tidy; exit 0" INT; echo ready; while true; do sleep 0.01; done',
    { fields: { stop: { signal: 'SIGINT', graceSeconds: 60 } }, ...abortAt('ready', 'cancelled') },
  );
  expect(error).toBe('cancelled');
  expect(text).toBe('ready\ntidy');
});

/** A child that ends in order, and its parent, which does not wait for that. */
const TIDY = `trap "sleep 0.3; echo tidy; exit" TERM; echo ready; while true; do sleep 0.02; done`;
/** What a script has printed, without what Bash says of a `sleep` that has got the signal. */
const linesOf = (text: string) => text.split('\n').filter((line) => line !== 'Terminated');
const LONG_STOP = { stop: { graceSeconds: 60 } };

test.each([
  ['a cancellation', stopRequest('cancelled', 5_000)],
  ['a lost attempt', stopRequest('lost', 5_000)],
  ['the stop of the runner', runnerStopRequest()],
])('after %s, children have the time to end in order that their parent has', async (_, reason) => {
  const { error, text } = await types.script(`bash -c '${TIDY}'; true`, {
    fields: LONG_STOP,
    ...abortAt('ready', reason),
  });
  expect(error).toBe(reason);
  expect(linesOf(text)).toEqual(['ready', 'tidy']);
});

test('after the limit of the attempt, children have the time to end in order, too', async () => {
  const { error, text } = await types.script(`bash -c '${TIDY}'; true`, {
    fields: LONG_STOP,
    attempt: { timeoutMs: 1_500 },
  });
  expect(error).toMatchObject({ code: 'timed_out' });
  expect(linesOf(text)).toEqual(['ready', 'tidy']);
});

test('a daemon that has left the group is asked to stop when the command has ended', async () => {
  const { text } = await types.script(`setsid bash -c '${TIDY}' & wait`, {
    fields: LONG_STOP,
    ...abortAt('ready', 'cancelled'),
  });
  expect(linesOf(text)).toEqual(['ready', 'tidy']);
});

test.each([
  ['is replaced by the command', ['env', 'A=b'], ['ready', 'tidy']],
  // As bubblewrap does with --die-with-parent.
  [
    'dies of the signal and takes with it what is inside',
    ['sh', '-c', 'setpriv --pdeathsig KILL "$@"; exit $?', 'sandbox'],
    ['ready', 'tidy'],
  ],
  [
    'handles the signal',
    ['bash', '-c', 'trap "echo wrapper" TERM; "$@" & wait; wait', 'sandbox'],
    ['ready', 'wrapper', 'tidy'],
  ],
])('a command can end in order in a wrapper that %s', async (_, wrapper, expected) => {
  const { text } = await types.script(TIDY, {
    fields: LONG_STOP,
    host: { wrapper },
    ...abortAt('ready', 'cancelled'),
  });
  expect(linesOf(text)).toEqual(expected);
});

test('a command that takes too long fails with timed_out', async () => {
  const { error } = await types.script('exec sleep 600', { attempt: { timeoutMs: 100 } });
  expect(error).toMatchObject({ code: 'timed_out', retryable: true });
});

describe('a cancellation', () => {
  test('before the start starts nothing', async () => {
    const { error, text } = await types.script('echo started', {
      signal: AbortSignal.abort('cancelled'),
    });
    expect(error).toBe('cancelled');
    expect(text).toBe('');
  });

  test('between the start and the first line leaves no process', async () => {
    const type = await types.declare('echo $$ > "$OUT"; exec sleep 600', {
      run: { env: { OUT: path.join(types.folder, 'id') } },
      stop: { graceSeconds: 0.1 },
    });
    // At several moments of the start.
    for (const after of [0, 1, 2, 4, 8, 16, 32]) {
      const stop = new AbortController();
      const running = types.run(type, { signal: stop.signal });
      setTimeout(() => stop.abort('cancelled'), after);
      expect((await running).error).toBe('cancelled');
    }
    const last = await readFile(path.join(types.folder, 'id'), 'utf8').catch(() => '0');
    expect(await isRunning(Number(last))).toBe(false);
  });

  test('after the end does not change the result', async () => {
    const stop = new AbortController();
    const { result } = await types.script(
      'echo "{}" > $HOLDFAST_RESULT; echo done >> $HOLDFAST_EVENTS',
      { signal: stop.signal },
    );
    stop.abort('cancelled');
    expect(result).toEqual({});
  });
});

/** The process that leads the session of a command. */
const shimOf = async (id: number): Promise<number> => {
  const stat = await readFile(`/proc/${id}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[4]);
};

test('when the shim is killed, the command and its children are killed, and the attempt fails', async () => {
  let seen = '';
  const { error } = await types.script(`echo "shim $(cut -d" " -f6 /proc/$$/stat)"${VISIBLE}`, {
    onLine(message) {
      seen += `${message}\n`;
      const shim = /^shim (\d+)$/m.exec(seen)?.[1];
      if (shim && childrenIn(seen).length === CHILD_COUNT) {
        seen += 'shim killed';
        process.kill(Number(shim), 'SIGKILL');
      }
    },
  });
  expect(error).toMatchObject({ code: 'command_not_run', retryable: true });
  await expectAllEnded(seen.replace('shim killed', ''));
});

/** Runs a script in a runner of its own, which can be killed. */
async function startRunner(script: string, leaseMs = 0) {
  const type = await types.declare(script);
  const work = path.join(types.folder, 'killed');
  const program = path.join(import.meta.dirname, '../../support/runner/killable.ts');
  const runner = spawn(process.execPath, [program, type.file, work, String(leaseMs)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [runner.stdout, runner.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await eventually(
    () => childrenIn(output),
    ({ length }) => length === CHILD_COUNT,
  );
  return { work, runner, text: () => output };
}

test('when the runner is killed, the command and its children are killed', async () => {
  const { work, runner, text } = await startRunner(OBSTINATE);
  runner.kill('SIGKILL');
  await once(runner, 'exit');
  await eventually(
    async () => (await Promise.all(childrenIn(text()).map(isRunning))).includes(true),
    (runs) => !runs,
  );
  const folders = await readdir(work);
  expect(folders).toHaveLength(1);
  // The next runner removes what is left on the disk.
  const next = await openWorkFolder(work);
  expect(await readdir(work)).not.toContain(folders[0]);
  await next.remove();
});

test('when the runner is paused, the command and its children are killed at the end of the lease', async () => {
  const { runner, text } = await startRunner(OBSTINATE, 1_000);
  // It is renewed for longer than it lasts.
  await sleep(1_500);
  for (const id of childrenIn(text())) expect(await isRunning(id)).toBe(true);
  runner.kill('SIGSTOP');
  await eventually(
    async () => (await Promise.all(childrenIn(text()).map(isRunning))).includes(true),
    (runs) => !runs,
    { withinMs: 10_000 },
  );
  runner.kill('SIGCONT');
  await once(runner, 'close');
  expect(text()).toMatch(/did not renew the lease/);
});

test('when runner and shim are killed, the next runner ends what is left', async () => {
  const { work, runner, text } = await startRunner(VISIBLE);
  const shim = await shimOf(childrenIn(text())[0] ?? 0);
  // On a busy machine a shim that is killed is still there when its runner has ended.
  process.kill(shim, 'SIGSTOP');
  runner.kill('SIGKILL');
  await once(runner, 'exit');
  // Those that have not left the group need no next runner.
  const ofGroup = childrenIn(text()).slice(0, 2);
  await eventually(
    async () => (await Promise.all(ofGroup.map(isRunning))).includes(true),
    (runs) => !runs,
  );
  process.kill(shim, 'SIGKILL');
  await (await openWorkFolder(work)).remove();
  await expectAllEnded(text());
});

test('a work folder of a runner that runs is left alone', async () => {
  const work = path.join(types.folder, 'shared');
  const first = await openWorkFolder(work);
  const run = await first.createRun();
  await writeFile(run.payload, '{}');
  await openWorkFolder(work);
  expect(await readdir(run.folder)).toContain('payload.json');
  expect(await readlink('/proc/self')).toBe(String(process.pid));
});

test('runners that start at the same time remove what a killed one has left', async () => {
  const work = path.join(types.folder, 'together');
  const left = Array.from({ length: 20 }, (_, n) => path.join(work, `${4_000_000 + n}-1`));
  await mkdir(work, { mode: 0o700 });
  await Promise.all(left.map((folder) => mkdir(folder)));
  const opened = await Promise.all(Array.from({ length: 5 }, () => openWorkFolder(work)));
  expect(await readdir(work)).toHaveLength(1);
  await Promise.all(opened.map((each) => each.remove()));
});
