import { beforeAll, describe, expect, test } from '@jest/globals';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { assertDefined } from '../../domain/shared/assert.ts';
import { buildConsole } from '../../ui/build.ts';

/** Of Vite's manifest: what was built of a source, and the other entries that it imports. */
type Chunk = { name: string; file: string; imports?: string[]; css?: string[]; isEntry?: true };

/** A browser asks a server without HTTP/2 for six files at a time. */
const MAX_FILES = 30;
/** Compressed with Brotli. */
const MAX_FIRST_SCRIPT_BYTES = 200_000;

describe('the bundle of the console', () => {
  let folder: string;
  let chunks: Readonly<Record<string, Chunk>>;

  beforeAll(async () => {
    folder = await buildConsole();
    const manifest = await readFile(path.join(folder, '.vite', 'manifest.json'), 'utf8');
    chunks = JSON.parse(manifest) as Record<string, Chunk>;
  });

  /** The files without which none of the sources runs. */
  function filesOf(sources: readonly string[]): string[] {
    const reached = new Set<string>();
    const files = new Set<string>();
    const open = [...sources];
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (reached.has(name)) continue;
      reached.add(name);
      const { file, css = [], imports = [] } = assertDefined(chunks[name], name);
      for (const each of [file, ...css]) files.add(each);
      open.push(...imports);
    }
    return [...files];
  }

  const frame = () => Object.keys(chunks).filter((name) => chunks[name]?.isEntry);

  test('needs few files for each page', () => {
    const pages = Object.keys(chunks).filter((name) => name.endsWith('Page.tsx'));
    expect(pages.length).toBeGreaterThan(60);
    const counts = pages.map((page) => ({ page, files: filesOf([...frame(), page]).length }));
    expect(counts.filter(({ files }) => files > MAX_FILES)).toEqual([]);
  });

  test('needs little JavaScript for the first page', async () => {
    // The page and what it shows soon are one file.
    const home = Object.keys(chunks).filter((name) => chunks[name]?.name === 'home');
    expect(home).toHaveLength(1);
    const files = filesOf([...frame(), ...home]);
    const scripts = files.filter((file) => file.endsWith('.js'));
    const sizes = scripts.map(async (file) => (await stat(path.join(folder, `${file}.br`))).size);
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeLessThan(MAX_FIRST_SCRIPT_BYTES);
  });
});
