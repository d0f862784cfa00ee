import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { versionText } from '../../../processes/versionText.ts';

const DOCS = path.resolve(import.meta.dirname, '../../../docs');

const firstGroups = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, name = '']) => name);

/** Aliases such as `hf`, and variables, that commands use and the page does not define. */
function undefinedNames(page: string): string[] {
  const commands = firstGroups(page, /^ *```(?:sh|bash)?\n([^]*?)^ *```/gm).join('\n');
  const defined = new Set([
    ...firstGroups(commands, /\b(\w+)\(\) \{/g),
    ...firstGroups(commands, /\balias (\w+)=/g),
    ...firstGroups(commands, /(?:^|[\s(])([A-Z_]+)=/gm),
  ]);
  const used = [
    ...firstGroups(commands, /(?:^|[|(;])\s*(h[a-z]) /gm),
    ...firstGroups(commands, /\$\{?([A-Z][A-Z_]+)/g),
  ];
  // The product or the installation sets the others.
  return used.filter((name) => !defined.has(name) && !name.startsWith('HOLDFAST'));
}

test('commands of a guide use only names that it defines', async () => {
  const names = (await readdir(DOCS)).filter((name) => name.endsWith('.md'));
  expect(names.length).toBeGreaterThan(20);
  for (const name of names) {
    const page = await readFile(path.join(DOCS, name), 'utf8');
    expect([name, undefinedNames(page)]).toEqual([name, []]);
  }
});

test('docs/upgrading.md shows the version of these files', async () => {
  expect(await readFile(path.join(DOCS, 'upgrading.md'), 'utf8')).toContain(`\n${versionText()}\n`);
});
