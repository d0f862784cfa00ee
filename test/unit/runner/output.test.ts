import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { StopRequest } from '../../../runner/command/attempt.ts';
import { prepareRun } from '../../../runner/command/preparedRun.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

let types: DeclaredTypes;

beforeAll(async () => void (types = await createDeclaredTypes()));
afterAll(() => types.remove());

const SECRET = `p4ss"w/rd'<&> é`;

test('lines of both outputs, progress, events, result and artifacts reach the attempt', async () => {
  const { result, lines, progress, artifacts } = await types.script(
    `
    echo one; echo two >/dev/stderr; printf 'no line feed' >/dev/stdout
    echo '{"progress": 40, "message": "half"}' >> $HOLDFAST_EVENTS
    echo '{"log": {"level": "warn", "message": "odd", "data": {"port": 1}}}' >> $HOLDFAST_EVENTS
    echo 'what?' >> $HOLDFAST_EVENTS
    printf '{"progress": 140}' >> $HOLDFAST_EVENTS
    echo report > $HOLDFAST_ARTIFACTS/report.txt; ln -s /etc/passwd $HOLDFAST_ARTIFACTS/passwd
    cat $HOLDFAST_PAYLOAD > $HOLDFAST_RESULT`,
    { attempt: { payload: { host: '$(id)' } } },
  );
  expect(result).toEqual({ host: '$(id)' });
  expect(lines).toContainEqual({ level: 'info', message: 'one', data: { stream: 'stdout' } });
  expect(lines).toContainEqual({ level: 'info', message: 'two', data: { stream: 'stderr' } });
  expect(lines).toContainEqual({
    level: 'info',
    message: 'no line feed',
    data: { stream: 'stdout' },
  });
  expect(lines).toContainEqual({ level: 'warn', message: 'odd', data: { port: 1 } });
  expect(lines).toContainEqual({
    level: 'warn',
    message: 'A line of the events file is not JSON; it is left out',
    data: undefined,
  });
  expect(progress).toEqual([
    { percent: 40, message: 'half' },
    { percent: 100, message: undefined },
  ]);
  expect(artifacts.map(({ name }) => name)).toEqual(['report.txt']);
  expect(lines.at(-1)?.message).toMatch(/Artifacts were not stored: 1/);
});

test('events that cannot be passed on as they are harm neither the command nor the runner', async () => {
  const { result, lines, progress } = await types.script(String.raw`
    deep=$(head -c 60000 /dev/zero | tr '\0' '[')
    echo "{\"log\": {\"message\": \"deep\", \"data\": {\"a\": $deep$(tr '[' ']' <<< $deep)}}}" >> $HOLDFAST_EVENTS
    echo '{"progress": 40, "message": "half \ud83d"}' >> $HOLDFAST_EVENTS
    sleep 0.4
    echo '{"log": {"message": "half \udce9"}}' >> $HOLDFAST_EVENTS
    echo '{"done": true}' > $HOLDFAST_RESULT`);
  expect(result).toEqual({ done: true });
  expect(progress).toEqual([{ percent: 40, message: 'half \uFFFD' }]);
  expect(lines.map(({ message }) => message)).toEqual([
    'A line of the events file is nested deeper than 100 levels; it is left out',
    'half \uFFFD',
  ]);
});

test('data of which JSON would lose a part is left out, and its line is kept', async () => {
  const { lines, progress } = await types.script(String.raw`
    echo '{"log": {"message": "long", "data": {"ns": 1764288000123456789}}}' >> $HOLDFAST_EVENTS
    echo '{"log": {"message": "large", "data": {"n": 1e400}}}' >> $HOLDFAST_EVENTS
    echo '{"log": {"message": "twice", "data": {"a": 1, "a": 2}}}' >> $HOLDFAST_EVENTS
    echo '{"progress": 40, "progress": 50}' >> $HOLDFAST_EVENTS`);
  const double = 'is a number that a double (IEEE 754) cannot hold; send it as a string';
  expect(lines.map(({ message, data }) => ({ message, data }))).toEqual([
    { message: 'long', data: { leftOut: `/ns ${double}` } },
    { message: 'large', data: { leftOut: `/n ${double}` } },
    { message: 'twice', data: { leftOut: '/a is repeated in the same object' } },
    {
      message:
        'A line of the events file has an error at /progress: it is repeated in the same object; it is left out',
      data: undefined,
    },
  ]);
  expect(progress).toEqual([]);
});

test('the environment of a command is its own', async () => {
  const own = { HOLDFAST_RUNNER_TOKEN: 'hfw_token', DATABASE_URL: 'postgres://x', HF_TEST: '1' };
  Object.assign(process.env, own);
  try {
    const { result } = await types.script(
      `env | cut -d= -f1 | grep -v '^[^A-Z]' | sort | tr '\\n' ' ' > $HOME/names
       printf '{"names": "%s", "mode": "%s"}' "$(cat $HOME/names)" "$(stat -c %a $HOLDFAST_PAYLOAD)" > $HOLDFAST_RESULT`,
    );
    expect(result).toEqual({
      names:
        'HOLDFAST_ARTIFACTS HOLDFAST_ATTEMPT HOLDFAST_EVENTS HOLDFAST_JOB_ID HOLDFAST_PAYLOAD ' +
        'HOLDFAST_RESULT HOLDFAST_RUN HOME LANG PATH PWD SHLVL TMPDIR ',
      mode: '600',
    });
  } finally {
    for (const name of Object.keys(own)) Reflect.deleteProperty(process.env, name);
  }
});

test('invalid UTF-8, control sequences and overwritten text do not reach the log', async () => {
  const { lines } = await types.script(
    `printf '\\xff\\xfeok\\n\\033[31mred\\033[0m \\033]0;title\\007end\\n10%%\\r20%%\\r100%%\\r\\nnul\\0!\\n'`,
  );
  expect(lines.map(({ message }) => message)).toEqual([
    '\uFFFD\uFFFDok',
    'red end',
    '100%',
    'nul\uFFFD!',
  ]);
});

test('a line of 100 MB is cut, with little memory', async () => {
  const before = process.memoryUsage().rss;
  const { lines, result } = await types.script(
    `head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end`,
  );
  expect(result).toEqual({});
  expect(lines.map(({ message }) => message.length)).toEqual([8_192, 3]);
  expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
});

test('a command that prints without end leaves time for others', async () => {
  const stop = new AbortController();
  const before = performance.eventLoopUtilization();
  setTimeout(() => stop.abort(new StopRequest('enough')), 1_500);
  const { error } = await types.script('exec yes', { signal: stop.signal });
  expect(error).toMatchObject({ message: 'enough' });
  expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.85);
});

test('secrets are masked in lines, progress, results with their keys, and errors', async () => {
  await types.addSecret('key', `${SECRET}\n`);
  const secrets = { KEY: { env: 'key' }, KEY_FILE: { file: 'key' } };
  const { result, text, progress } = await types.script(
    `printf '%s\\n' "$KEY"; cat $KEY_FILE; echo; printf '%s' "a:$KEY:b" | base64 -w0; echo
     printf 'half %s' "\${KEY:0:7}"; printf '%s end\\n' "\${KEY:7}"
     echo '{"mask": "added-secret"}' >> $HOLDFAST_EVENTS; echo added-secret
     echo '{"progress": 1, "message": "of added-secret"}' >> $HOLDFAST_EVENTS
     printf '{"%s": {"x": ["%s"]}}' added-secret-key added-secret > $HOLDFAST_RESULT`,
    { fields: { run: { secrets } } },
  );
  expect(text.split('\n').slice(0, 2)).toEqual(['********', '********']);
  expect(text).toMatch(/^.{0,4}\*{8}.{0,6}$\n^half \*{8} end$\n^\*{8}$/m);
  expect(progress).toEqual([{ percent: 1, message: 'of ********' }]);
  expect(result).toEqual({ '********-key': { x: ['********'] } });

  const schema = { type: 'object', additionalProperties: false };
  const failed = await types.script(`printf '{"%s": 1}' "$TOKEN" > $HOLDFAST_RESULT`, {
    fields: { result: schema },
    attempt: { secrets: { TOKEN: 'of-holdfast' } },
  });
  expect(failed.error).toMatchObject({
    code: 'invalid_result',
    message: expect.stringMatching(/: \/\*{8} is not a known field$/),
  });

  const payload = { type: 'object', properties: { pin: { 'x-holdfast-secret': true } } };
  const fromPayload = await types.script('cat $HOLDFAST_PAYLOAD', {
    fields: { payload },
    attempt: { payload: { pin: 'of-the-payload' } },
  });
  expect(fromPayload.text).toBe('{"pin":"********"}');
});

test.each([
  ['are masked beside a secret of the payload with many lines', 2_000, undefined],
  ['are not used if the payload has too many secrets to mask', 6_000, 'secrets_not_maskable'],
])('the named secrets %s', async (_title, count, code) => {
  const pin = Array.from({ length: count }, (_, at) => `line/${at}+of=a:bundle`).join('\n');
  const payload = { type: 'object', properties: { pin: { 'x-holdfast-secret': true } } };
  const { text, error } = await types.script('echo "token $TOKEN"', {
    fields: { payload },
    attempt: { payload: { pin }, secrets: { TOKEN: 'of-holdfast' } },
  });
  expect(text).toBe(code ? '' : 'token ********');
  expect((error as { code?: string } | undefined)?.code).toBe(code);
});

test.each([
  ['absent', 'true', undefined],
  ['absent, although the schema requires it', 'true', 'invalid_result'],
  ['not JSON', 'echo "{" > $HOLDFAST_RESULT', 'invalid_result'],
  ['not an object', 'echo "[]" > $HOLDFAST_RESULT', 'invalid_result'],
  ['against the schema', `echo '{"open": "x"}' > $HOLDFAST_RESULT`, 'invalid_result'],
  ['too large', 'head -c 1048577 /dev/zero > $HOLDFAST_RESULT', 'result_too_large'],
  ['a link', 'ln -s /etc/passwd $HOLDFAST_RESULT', 'invalid_result'],
  ['a pipe', 'mkfifo $HOLDFAST_RESULT', 'invalid_result'],
])('a result that is %s', async (title, script, code) => {
  const schema = { type: 'object', properties: { open: { type: 'integer' } }, required: ['open'] };
  const fields = title === 'absent' ? {} : { result: schema };
  const { result, error } = await types.script(script, { fields });
  if (code === undefined) expect(result).toEqual({});
  else expect(error).toMatchObject({ code, retryable: false });
});

test('the reason of a result that is not JSON is one sentence', async () => {
  const { error } = await types.script('echo "{" > $HOLDFAST_RESULT');
  expect(error).toMatchObject({ message: expect.stringMatching(/^The result is not/) });
});

test('exit codes have the meaning that the type assigns to them', async () => {
  const exitCodes = {
    '75': { code: 'busy', retryAfterSeconds: 60 },
    '2': { code: 'differs', retryable: false },
  };
  const ends = async (script: string) =>
    (await types.script(script, { fields: { exitCodes } })).error;
  expect(await ends('exit 75')).toMatchObject({
    code: 'busy',
    retryable: true,
    retryAfterMs: 60_000,
  });
  expect(await ends('exit 2')).toMatchObject({ code: 'differs', retryable: false });
  expect(await ends('exit 3')).toMatchObject({
    code: 'command_failed',
    message: 'The command ended with exit code 3',
  });
  expect(await ends('kill -SEGV $$')).toMatchObject({
    code: 'command_killed',
    message: 'The command was killed by SIGSEGV',
  });
});

test('nothing of a run is left: no file, and no process of one that has got no command', async () => {
  await types.script('echo x > $HOME/file');
  const { run, discard } = await prepareRun(types.workFolder);
  expect(await readdir(run.folder)).toContain('home');
  const waiting = await childProcesses();
  await discard();
  const [own = ''] = await readdir(path.join(types.folder, 'work'));
  const left = await readdir(path.join(types.folder, 'work', own));
  // Pipes are made ahead for the next runs.
  expect(left.filter((name) => !name.startsWith('pipe-'))).toEqual([]);
  expect((await childProcesses()).length).toBe(waiting.length - 1);
});

/** The children of this process that run a shim. */
async function childProcesses(): Promise<string[]> {
  const ids = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8');
  const commands = ids
    .split(' ')
    .filter(Boolean)
    .map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => ''));
  return (await Promise.all(commands)).filter((command) => command.includes('shim.pl'));
}
