import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { missingFor } from '../../../runner/command/capabilities.ts';
import { loadDeclaration, loadFolders } from '../../../runner/declaration/load.ts';
import { DeclarationError, readDeclaration } from '../../../runner/declaration/readDeclaration.ts';

const MINIMAL = `
apiVersion: holdfast/v1
name: net.audit
summary: Compares ports
pool: default
payload: {type: object, properties: {host: {type: string}, tags: {type: array}}, required: [host]}
run:
  argv: [bash, audit.sh]
`;

const FULL = `
apiVersion: holdfast/v1
name: net.port-audit
summary: Compares ports with the inventory
pool: default
targets: device
access: granted
payload: {type: object, additionalProperties: false, properties: {ports: {type: array, items: {type: string}}}}
result: {type: object}
run:
  argv: [ansible-playbook, audit.yml, --limit, "{target.name}"]
  cwd: playbooks
  env: {ANSIBLE_NOCOLOR: "1"}
  secrets: {API_TOKEN: {env: port-audit}, VAULT: {file: vault-pass}}
secrets: {SNMP: {secret: snmp}}
timeoutSeconds: 1800
lostAfterSeconds: 60
stop: {signal: SIGINT, graceSeconds: 30}
retry: {maxAttempts: 1}
exitCodes: {75: {code: busy, retryAfterSeconds: 60}, "2": {code: differences, retryable: false}}
concurrency: {limit: 1, per: target, whenFull: wait}
limits: {memoryMb: 1024, processes: 256}
`;

const problemsOf = (text: string): readonly string[] => {
  try {
    readDeclaration('/t/a.yaml', text);
    return [];
  } catch (error) {
    if (error instanceof DeclarationError) return error.problems;
    throw error;
  }
};

test('defaults are those of the documentation', () => {
  expect(readDeclaration('/t/a.yaml', MINIMAL)).toMatchObject({
    targets: 'none',
    access: 'granted',
    timeoutSeconds: 600,
    lostAfterSeconds: 30,
    stop: { signal: 'SIGTERM', graceSeconds: 10 },
  });
});

test('every field can be declared, and how the command runs is not announced', async () => {
  const declaration = readDeclaration('/t/a.yaml', FULL);
  expect(declaration).toMatchObject({ limits: { processes: 256 }, exitCodes: { '75': {} } });
  const { definitionOf } = await import('../../../runner/declaration/readDeclaration.ts');
  expect(Object.keys(definitionOf(declaration)).sort()).toEqual(
    'access concurrency lostAfterSeconds name payload pool result retry secrets summary targets timeoutSeconds'.split(
      ' ',
    ),
  );
});

const bomb = `${MINIMAL}x: &a [${'1,'.repeat(10)}]\ny: [*a, *a]\n`;

test.each([
  ['an unknown field', `${MINIMAL}shell: true\n`, /^\/t\/a\.yaml:9:1: shell is not a known field$/],
  ['a wrong value', MINIMAL.replace('default', 'Default'), /:5:1: pool must be the name of a pool/],
  ['a nested field', MINIMAL.replace('[bash, audit.sh]', '7'), /:8:3: run\.argv must be an array/],
  ['a missing field', MINIMAL.replace(/^pool.*$/m, ''), /: pool is required$/],
  ['a repeated key', `${MINIMAL}pool: other\n`, /:9:1: Map keys must be unique/],
  ['broken YAML', `${MINIMAL}x: [`, /^\/t\/a\.yaml:\d+:\d+: /],
  ['an alias', bomb, /alias/i],
  ['a tag', `${MINIMAL}x: !!js/function a\n`, /^\/t\/a\.yaml:9:\d+: Unresolved tag/],
  ['a name of Holdfast', MINIMAL.replace('net.audit', 'core.echo'), /name must not begin/],
  [
    'a payload that is no object',
    MINIMAL.replace('{type: object,', '{type: array,'),
    /payload\.type/,
  ],
  [
    'a schema that is none',
    MINIMAL.replace('{type: string}', '{type: text}'),
    /not a valid JSON Schema/,
  ],
  [
    'a reference to elsewhere',
    MINIMAL.replace('{type: string}', '{$ref: "http://x/y"}'),
    /JSON Schema/,
  ],
  [
    'a target without targets',
    MINIMAL.replace('audit.sh', '"{target.name}"'),
    /argv\.1 names a target/,
  ],
  [
    'an unknown part of a target',
    FULL.replace('{target.name}', '{target.ip}'),
    /argv\.3 \{target\.ip\} is not known/,
  ],
  [
    'an unknown field in an argument',
    MINIMAL.replace('audit.sh', '"{payload.x}"'),
    /not a property/,
  ],
  ['an array in an argument', MINIMAL.replace('audit.sh', '"{payload.tags}"'), /must be a text/],
  [
    'a placeholder as program',
    MINIMAL.replace('[bash', '["{payload.host}"'),
    /argv\.0 is the program/,
  ],
  [
    'an optional field in an argument',
    MINIMAL.replace(', required: [host]', '').replace('audit.sh', '"{payload.host}"'),
    /required or have a default/,
  ],
  ['a folder outside', FULL.replace('playbooks', '../x'), /run\.cwd must not leave/],
  [
    'a variable of Holdfast',
    FULL.replace('ANSIBLE_NOCOLOR', 'HOLDFAST_RESULT'),
    /HOLDFAST_RESULT is a variable of Holdfast/,
  ],
  [
    'a variable from two sources',
    FULL.replace('SNMP', 'API_TOKEN'),
    /secrets\.API_TOKEN is declared twice/,
  ],
  ['an exit code of success', FULL.replace('75:', '0:'), /exitCodes/],
  ['a file that is too large', `${MINIMAL}# ${'x'.repeat(300_000)}`, /larger than/],
])('%s is an error', (_, text, message) => {
  expect(problemsOf(text).join('\n')).toMatch(message);
});

test('all problems of a file are reported', () => {
  expect(problemsOf(`${MINIMAL}shell: true\nlogs: 1\n`)).toHaveLength(2);
});

describe('a declaration on the disk', () => {
  let folder: string;
  const write = (name: string, text: string) => writeFile(path.join(folder, name), text);
  const digest = async () => (await loadDeclaration(path.join(folder, 'a.yaml'))).digest;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-declaration-'));
    await mkdir(path.join(folder, 'sub'));
    await write('a.yaml', MINIMAL);
    await write('audit.sh', 'echo');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test('its digest covers what it means and the files that it names', async () => {
    const first = await digest();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    await write('a.yaml', `# a comment\n${MINIMAL}`);
    await write('other.sh', 'echo');
    expect(await digest()).toBe(first);
    await write('audit.sh', 'echo changed');
    const changed = await digest();
    expect(changed).not.toBe(first);
    await chmod(path.join(folder, 'audit.sh'), 0o755);
    expect(await digest()).not.toBe(changed);
    await write('a.yaml', MINIMAL.replace('ports', 'addresses'));
    expect(await digest()).not.toBe(changed);
    await write('a.yaml', MINIMAL);
  });

  test('broken files do not keep others from being loaded, and a name is declared once', async () => {
    await write('b.yml', MINIMAL.replace('net.audit', 'net.other'));
    await write('c.yaml', MINIMAL);
    await write('d.yaml', 'name: [');
    const { types, refusals } = await loadFolders([folder, path.join(folder, 'missing')]);
    expect(types.map(({ definition }) => definition.name)).toEqual(['net.audit', 'net.other']);
    expect(refusals.map(({ file }) => path.basename(file))).toEqual(['c.yaml', 'd.yaml']);
    expect(refusals[0]?.problems[0]).toMatch(/a\.yaml declares net\.audit, too/);
  });

  test('a runner says what it lacks for a type', async () => {
    const host = { secretsFolder: undefined, wrapper: [] };
    await write('a.yaml', FULL.replace('ansible-playbook', 'no-such-program'));
    const missing = (
      await missingFor(await loadDeclaration(path.join(folder, 'a.yaml')), host)
    ).join('\n');
    expect(missing).toMatch(/There is no folder .*playbooks/);
    expect(missing).toMatch(/There is no program no-such-program/);
    expect(missing).toMatch(/no readable file port-audit/);
    if (process.getuid?.() === 0) expect(missing).toMatch(/does not hold for root/);
    await write('a.yaml', MINIMAL);
    expect(await missingFor(await loadDeclaration(path.join(folder, 'a.yaml')), host)).toEqual([]);
  });
});
