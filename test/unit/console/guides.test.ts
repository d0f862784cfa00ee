import { describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { searched } from '../../../ui/areas/help/searched.ts';
import { guideOf } from '../../../ui/app/guideOf.ts';
import type { Block, Inline } from '../../../ui/guides/guide.ts';
import { anchorOf, parseGuide, targetOf } from '../../../ui/guides/parseGuide.ts';

const DOCS = new URL('../../../docs/', import.meta.url);
const names = readdirSync(DOCS).flatMap((file) => /^(.*)\.md$/.exec(file)?.[1] ?? []);
const guides = new Map(
  names.map((name) => [name, parseGuide(readFileSync(new URL(`${name}.md`, DOCS), 'utf8'))]),
);

const inBlocks = (blocks: readonly Block[]): Inline[] =>
  blocks.flatMap((block): Inline[] => {
    if (block.kind === 'code') return [];
    if (block.kind === 'list') return inBlocks(block.items.flat());
    if (block.kind === 'quote') return inBlocks(block.of);
    return block.kind === 'table' ? [...block.head, ...block.rows.flat()].flat() : block.of;
  });
const linksIn = (parts: readonly Inline[]): string[] =>
  parts.flatMap((part) => {
    if (typeof part === 'string' || part.kind === 'code') return [];
    return [...(part.kind === 'link' ? [part.to] : []), ...linksIn(part.of)];
  });
const headingsOf = (name: string) =>
  guides.get(name)?.blocks.flatMap((block) => (block.kind === 'heading' ? [block.id] : [])) ?? [];

describe('the guides', () => {
  test('lead to guides and parts of them that there are', () => {
    const missing = [...guides].flatMap(([name, { blocks }]) =>
      linksIn(inBlocks(blocks)).filter((to) => {
        if (to.startsWith('https://')) return false;
        const [path = '', part] = to.split('#');
        const target = path === '' ? name : path.replace('/help/', '');
        return !guides.has(target) || (part !== undefined && !headingsOf(target).includes(part));
      }),
    );
    expect(missing).toEqual([]);
  });

  test.each(['/', '/inventory/imports/new', '/inventory/prefixes/space', '/jobs/x', '/audit'])(
    'have one for the page %s',
    (path) => {
      const { guide, hash } = guideOf(path);
      expect(guides.has(guide)).toBe(true);
      if (hash !== '') expect(headingsOf(guide)).toContain(hash);
    },
  );

  test('have no markup: what resembles it is text, or left out', () => {
    const { blocks } = parseGuide(
      '# T\n\n<script>alert(1)</script>\n\nA <img src=x onerror=y> & `<b>` [x](javascript:alert) [y](adr/0001.md)\n',
    );
    expect(linksIn(inBlocks(blocks))).toEqual([]);
    expect(blocks).toEqual([
      { kind: 'text', of: ['A ', ' & ', { kind: 'code', text: '<b>' }, ' ', 'x', ' ', 'y'] },
    ]);
  });

  test('have anchors as forges make them, and links of the console', () => {
    expect(anchorOf('Names beside ids, `q` and so on')).toBe('names-beside-ids-q-and-so-on');
    expect(targetOf('api.md#lists')).toBe('/help/api#lists');
    expect(targetOf('../README.md')).toBeUndefined();
    expect(targetOf('http://example.net')).toBeUndefined();
  });

  test('of terms are searched by their rows', () => {
    const found = searched(guides.get('glossary')?.blocks ?? [], 'legal HOLD');
    expect(found.filter(({ kind }) => kind === 'table').length).toBeGreaterThan(0);
    expect(JSON.stringify(found)).not.toContain('occurrence');
    expect(searched(guides.get('glossary')?.blocks ?? [], 'nothing like it')).toEqual([]);
  });
});
