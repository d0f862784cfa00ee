import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const TEMPLATES = path.join(ROOT, 'ops/helm/holdfast/templates');

/** The templates of the chart that have pods, by name. */
async function podTemplates(): Promise<[string, string][]> {
  const files = await Promise.all(
    (await readdir(TEMPLATES)).map(async (name): Promise<[string, string]> => [
      name,
      await readFile(path.join(TEMPLATES, name), 'utf8'),
    ]),
  );
  return files.filter(([, text]) => text.includes(' containers:'));
}

/** The pods that the guides show. */
async function documentedPods(): Promise<[string, string][]> {
  const text = await readFile(path.join(ROOT, 'docs/operations.md'), 'utf8');
  const blocks = [...text.matchAll(/```yaml\n([^]*?)```/g)].map(([, block = '']) => block);
  return blocks
    .filter((block) => block.includes('kind: Pod'))
    .map((block) => ['docs/operations.md', block]);
}

test('no pod has links to Services, which would set HOLDFAST_PORT', async () => {
  const pods = [...(await podTemplates()), ...(await documentedPods())];
  expect(pods.map(([name]) => name).sort()).toEqual([
    '_helpers.tpl',
    'docs/operations.md',
    'migrate.yaml',
  ]);
  for (const [name, text] of pods)
    expect([name, text.match(/^ *enableServiceLinks: false\b/gm)?.length]).toEqual([name, 1]);
});

test('each container of the chart has the extra volumes', async () => {
  for (const [name, text] of await podTemplates())
    for (const value of ['Volumes', 'VolumeMounts'])
      expect([name, value, text.includes(`.Values.extra${value} }}`)]).toEqual([name, value, true]);
});

test('the guide lets Helm wait longer than a migration may take', async () => {
  const values = parse(
    await readFile(path.join(ROOT, 'ops/helm/holdfast/values.yaml'), 'utf8'),
  ) as { migrate: { activeDeadlineSeconds: number } };
  const guide = await readFile(path.join(ROOT, 'docs/operations.md'), 'utf8');
  const commands = guide.match(/^helm upgrade .*/gm) ?? [];
  expect(commands).toHaveLength(1);
  for (const command of commands) {
    const [, minutes] = / --timeout (\d+)m /.exec(command) ?? [];
    expect(Number(minutes) * 60).toBeGreaterThan(values.migrate.activeDeadlineSeconds);
  }
});
