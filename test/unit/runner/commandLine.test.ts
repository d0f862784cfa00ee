import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { missingFor } from '../../../runner/command/capabilities.ts';
import { readSecret } from '../../../runner/command/secrets.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

let types: DeclaredTypes;

beforeAll(async () => void (types = await createDeclaredTypes()));
afterAll(() => types.remove());

const PRINT = 'printf "%s|" "$#" "$@"; echo';

/** Runs a command with the arguments `argv`, and returns what it has got. */
async function argumentsOf(argv: string[], payload: Record<string, unknown>, target = 'sw-1') {
  const type = await types.declare('', {
    targets: 'device',
    payload: { type: 'object', properties: { a: { type: ['string', 'number'] } }, required: ['a'] },
    run: { argv: ['bash', '-c', PRINT, 'bash', ...argv] },
  });
  const { text, error } = await types.run(type, {
    attempt: { payload, target: { kind: 'device', id: 'dev_1', name: target } },
  });
  return error ?? text;
}

test('a value stays inside of its argument, and no shell reads it', async () => {
  expect(
    await argumentsOf(['x{payload.a}y', '{target.id}', '{}', '{other.x}'], {
      a: '$(id) `id` "q" *',
    }),
  ).toBe('4|x$(id) `id` "q" *y|dev_1|{}|{other.x}|');
  expect(await argumentsOf(['{payload.a}'], { a: 'one\ntwo' })).toBe('1|one\ntwo|');
  expect(await argumentsOf(['{payload.a}'], { a: '' })).toBe('1||');
  expect(await argumentsOf(['--ports={payload.a}'], { a: '--help' })).toBe('1|--ports=--help|');
});

test.each([
  ['--help', ['{payload.a}'], 'sw-1'],
  [-5, ['{payload.a}'], 'sw-1'],
  ['x', ['{target.name}'], '-sw'],
  ['a\0b', ['x{payload.a}'], 'sw-1'],
])('%j is refused where it would be an option or no argument', async (a, argv, target) => {
  expect(await argumentsOf(argv, { a }, target)).toMatchObject({
    code: 'argument_refused',
    retryable: false,
  });
});

test('a payload without the field is refused', async () => {
  expect(await argumentsOf(['{payload.a}'], {})).toMatchObject({ code: 'argument_refused' });
});

test('a program or a folder that is missing is a failure with its reason', async () => {
  const { error } = await types.script('', { fields: { run: { argv: ['/no/such/program'] } } });
  expect(error).toMatchObject({
    code: 'command_not_run',
    message: expect.stringMatching(/cannot execute \/no\/such\/program: No such file/),
  });
  const { error: folder } = await types.script('', { fields: { run: { cwd: 'missing' } } });
  expect(folder).toMatchObject({
    message: expect.stringMatching(/cannot enter .*missing/),
  });
});

test('a secret that the machine cannot read now is no failure of the job', async () => {
  // Reading this file fails with EIO.
  await expect(readSecret('/proc/self', { file: 'mem' })).rejects.toMatchObject({ code: 'EIO' });
});

test('secrets of the runner and of Holdfast are variables; a missing one is a failure', async () => {
  const fields = { run: { secrets: { KEY: { env: 'key-1' } } } };
  const { error } = await types.script('true', { fields });
  expect(error).toMatchObject({
    code: 'secret_missing',
    message: 'The secrets folder of the runner has no readable file key-1',
  });
  await types.addSecret('key-1', 'from-the-runner');
  const script = 'echo "${KEY:0:8}.${KEY:8}"';
  expect((await types.script(script, { fields })).text).toBe('from-the.-runner');
  const attempt = { secrets: { TOKEN: 'from-holdfast' } };
  const { text } = await types.script('echo "$TOKEN ${TOKEN:0:8}.${TOKEN:8}"', { attempt });
  expect(text).toBe('******** from-hol.dfast');
});

test.each([
  ['with a line feed at its end, as an OpenSSH key', Buffer.from('first line\nlast line\n')],
  ['with carriage returns', Buffer.from('first line\r\nlast line\r\n')],
  ['without a line feed', Buffer.from('first line')],
  ['that is no text, as a keytab', Buffer.from([5, 2, 0, 0, 0xff, 0xfe, 0x80, 10])],
])('a secret that is used as a file has its bytes: one %s', async (_, bytes) => {
  await types.addSecret('key-2', bytes);
  const { text } = await types.script(
    'od -An -v -tx1 "$KEY" | tr -d " \\n"; stat -c " %a" "$KEY"',
    {
      fields: { run: { secrets: { KEY: { file: 'key-2' } } } },
    },
  );
  expect(text).toBe(`${bytes.toString('hex')} 600`);
});

test.each([
  ['other bytes than UTF-8', Buffer.from('pass\xffword', 'latin1')],
  ['U+0000', Buffer.from('password', 'utf16le')],
])(
  'a secret with %s is no variable: its type is not announced, and its job fails',
  async (_, bytes) => {
    await types.addSecret('key-3', bytes);
    const type = await types.declare('true', { run: { secrets: { KEY: { env: 'key-3' } } } });
    const problem = 'The secret key-3 of the runner is no text in UTF-8: use it as a file';
    expect(await missingFor(type, { secretsFolder: types.secretsFolder, wrapper: [] })).toEqual([
      problem,
    ]);
    expect((await types.run(type)).error).toMatchObject({
      code: 'secret_missing',
      message: problem,
    });
  },
);

test('a command can read its target', async () => {
  const target = { kind: 'site', id: 'sit_1', name: 'AMS "1"' } as const;
  const { result } = await types.script('cat $HOLDFAST_TARGET > $HOLDFAST_RESULT', {
    attempt: { target },
  });
  expect(result).toEqual(target);
});

test('limits and the wrapper of the runner apply to the command', async () => {
  const { text } = await types.script('ulimit -d; echo "$WRAPPED"', {
    fields: { limits: { memoryMb: 512 } },
    host: { wrapper: ['env', 'WRAPPED=yes'] },
  });
  expect(text).toBe(`${512 * 1_024}\nyes`);
  const { error } = await types.script(
    'x=$(head -c 100000000 /dev/zero | tr "\\0" x); echo ${#x}',
    {
      fields: { limits: { memoryMb: 32 } },
    },
  );
  expect(error).toMatchObject({
    code: expect.stringMatching(/^command_(failed|killed)$/),
  });
});

test('the PATH of a command chooses neither the wrapper nor what limits it', async () => {
  const { text } = await types.script('ulimit -d; echo "$PATH $WRAPPED"', {
    fields: { limits: { memoryMb: 512 }, run: { env: { PATH: '/none' } } },
    host: {
      wrapper: ['env', 'WRAPPED=yes', '/bin/bash', '-c', 'ulimit -d; echo "$PATH $WRAPPED"'],
    },
  });
  expect(text).toBe(`${512 * 1_024}\n/none yes`);
});

test('temporary files of a command do not outlive it, unless its type says where they belong', async () => {
  const script = 'f=$(mktemp); [ -w "$f" ] && echo "$f"';
  const { text } = await types.script(script);
  expect(text).toMatch(new RegExp(`^${types.folder}/work/.*/tmp\\.`));
  expect(existsSync(text)).toBe(false);
  // The path of a socket has 108 bytes at most; those of multiprocessing in Python have 31 below TMPDIR.
  expect(path.relative(types.folder, path.dirname(text)).length).toBeLessThan(50);
  const { text: own } = await types.script('echo $TMPDIR', {
    fields: { run: { env: { TMPDIR: '/var/tmp' } } },
  });
  expect(own).toBe('/var/tmp');
});
