import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

let types: DeclaredTypes;

beforeAll(async () => void (types = await createDeclaredTypes()));
afterAll(() => types.remove());

const mask = (value: string, how = '>>') => `echo '{"mask": "${value}"}' ${how} $HOLDFAST_EVENTS`;
const READ = 'sleep 0.4';

/** What a command does to its events file before it prints both secrets, and why its output is left out then. */
const losses: [title: string, script: string, reason: RegExp][] = [
  ['written again, not longer', `${mask('secret-1')}; ${READ}; ${mask('secret-2', '>')}`, /again/],
  [
    'written twice before it is read',
    `${mask('secret-1', '>')}; ${mask('secret-2', '>')}`,
    /again/,
  ],
  [
    'replaced by another',
    `${mask('secret-1')}; ${READ}; echo '{"mask": "secret-2"}' > $HOME/e; mv $HOME/e $HOLDFAST_EVENTS`,
    /was replaced/,
  ],
  [
    'removed',
    `${mask('secret-1')}; ${mask('secret-2')}; rm $HOLDFAST_EVENTS`,
    /cannot be read|replaced/,
  ],
  [
    'replaced by a folder',
    `${mask('secret-1')}; ${READ}; rm $HOLDFAST_EVENTS; mkdir $HOLDFAST_EVENTS`,
    /cannot be read/,
  ],
  [
    'has a mask that is not JSON',
    `echo '{"mask": "secret-1"secret-2"}' >> $HOLDFAST_EVENTS`,
    /cannot be read/,
  ],
  [
    'has a mask that is not a string',
    `echo '{"mask": ["secret-1", "secret-2"]}' >> $HOLDFAST_EVENTS`,
    /string/,
  ],
  [
    'has a line that is too long',
    `printf '{"mask": "secret-1%0140000d"}\\n' 0 >> $HOLDFAST_EVENTS`,
    /too long/,
  ],
  [
    'has more masks than there may be',
    `for i in $(seq 1000 1220); do ${mask("secret-'$i'")}; done`,
    /many/,
  ],
];

test.each(losses)(
  'the output is left out after the events file was: %s',
  async (_title, script, reason) => {
    const { text, result } = await types.script(`
      echo before; ${READ}; ${script}
      echo a secret-1; ${READ}; echo b secret-2; (echo '{"log": {"message": "secret-2"}}' >> $HOLDFAST_EVENTS) 2>&-
      echo '{"done": true}' > $HOLDFAST_RESULT`);
    expect(result).toEqual({ done: true });
    expect(text).not.toMatch(/secret-[12]/);
    const lines = text.split('\n');
    expect(lines[0]).toBe('before');
    expect(lines.find((line) => line.includes('left out, because a secret may be in it:'))).toMatch(
      reason,
    );
    expect(lines.at(-1)).toMatch(/left out, because a secret may be in them: [23]$/);
  },
);

test('a value is masked though no line feed ends its event, and though many events come before it', async () => {
  const { text } = await types.script(`
    printf '{"mask": "secret-1"}' >> $HOLDFAST_EVENTS; echo a secret-1; ${READ}
    printf '{"log": {"level": "debug", "message": "x"}}\\n%.0s' $(seq 60000) >> $HOLDFAST_EVENTS
    ${mask('secret-2')}; echo b secret-2`);
  expect(text.split('\n').filter((line) => line !== 'x')).toEqual(['a ********', 'b ********']);
});

test('lines wait for an event that is not finished, and are left out if they cannot wait any longer', async () => {
  const { text } = await types.script(`
    printf '{"mask": "secr' >> $HOLDFAST_EVENTS; echo a secret-1; ${READ}
    printf 'et-1"}\\n' >> $HOLDFAST_EVENTS; ${READ}
    printf '{"mask": "secr' >> $HOLDFAST_EVENTS; for i in $(seq 1000); do echo c secret-2; done; ${READ}
    printf 'et-2"}\\n' >> $HOLDFAST_EVENTS; echo d secret-2`);
  expect(text.split('\n')).toEqual([
    'a ********',
    'Lines are left out: the events before them were not read, and may mask a secret',
    'd ********',
    'Lines that are left out, because a secret may be in them: 1000',
  ]);
});
