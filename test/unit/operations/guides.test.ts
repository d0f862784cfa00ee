import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { versionText } from '../../../processes/versionText.ts';
import lastRelease from '../../fixtures/lastRelease.json' with { type: 'json' };

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

test('the changelog names each migration since the last release, and each change once', async () => {
  const changelog = await readFile(path.join(DOCS, '..', 'CHANGELOG.md'), 'utf8');
  const [, unreleased = ''] = changelog.split(/^## /m);
  const named = unreleased.split('\n').filter((line) => line.startsWith('- Migrations '));
  expect(named).toHaveLength(1);
  const [list = ''] = firstGroups(named.join(), /^- Migrations (.*?) run while/g);
  const numbers = Object.keys(MIGRATIONS).map((name) => name.slice(0, 4));
  const isNamed = (number: string) =>
    list.split(/, | and /).some((part) => {
      const [from = '', to = from] = part.split(' to ');
      return from <= number && number <= to;
    });
  const since = numbers.filter((number) => number > lastRelease.migration.slice(0, 4));
  expect(since.filter((number) => !isNamed(number))).toEqual([]);

  const beginnings = firstGroups(unreleased, /^- (.{60})/gm);
  expect(beginnings.filter((text, i) => beginnings.indexOf(text) !== i)).toEqual([]);
});

test('CONTRIBUTING.md names each area', async () => {
  const root = path.resolve(DOCS, '..');
  const page = await readFile(path.join(root, 'CONTRIBUTING.md'), 'utf8');
  const [list = ''] = firstGroups(page, /same area folders: (.*?)\. /gs);
  const folders = await readdir(path.join(root, 'services'));
  const areas = folders.filter((name) => !['jobTypes', 'shared'].includes(name)).toSorted();
  expect(firstGroups(list, /`(\w+)`/g)).toEqual(areas);
});

test('CONTRIBUTING.md names each file with code for an older version', async () => {
  const root = path.dirname(DOCS);
  const folders = (await readdir(root, { withFileTypes: true })).filter(
    (each) => each.isDirectory() && !/^(?:\.|node_modules|test|docs)/.test(each.name),
  );
  const marked: string[] = [];
  for (const folder of folders)
    for (const name of await readdir(path.join(root, folder.name), { recursive: true })) {
      if (!/\.tsx?$/.test(name)) continue;
      const text = await readFile(path.join(root, folder.name, name), 'utf8');
      for (const release of new Set(firstGroups(text, /\buntil (\d+\.\d+):/g)))
        marked.push(`${release} ${folder.name}/${name}`);
    }
  const guide = await readFile(path.join(root, 'CONTRIBUTING.md'), 'utf8');
  const rows = [...guide.matchAll(/^\| (\d+\.\d+) +\| `([^`]+)`/gm)];
  expect(rows.map(([, release, file]) => `${release} ${file}`).sort()).toEqual(marked.sort());
});

test('the list of decisions has each page with its number and title', async () => {
  const folder = path.join(DOCS, 'adr');
  const pages = (await readdir(folder)).filter((name) => /^\d{4}-/.test(name)).sort();
  expect(pages.length).toBeGreaterThan(70);
  const rows = pages.map(async (page) => {
    const [, number, title] =
      /^# (\d+)\. (.+)$/m.exec(await readFile(path.join(folder, page), 'utf8')) ?? [];
    expect(page.startsWith(`${String(number).padStart(4, '0')}-`)).toBe(true);
    return [number, `[${title}](${page})`];
  });
  const list = await readFile(path.join(folder, 'README.md'), 'utf8');
  const listed = [...list.matchAll(/^\| (\d+) +\| (\[.+\)) +\|$/gm)];
  expect(listed.map(([, ...cells]) => cells)).toEqual(await Promise.all(rows));
});
