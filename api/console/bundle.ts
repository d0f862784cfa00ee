import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Encoding, SharedContent } from '../http/sharedContent.ts';

/** A file of the console, in every encoding that it was compressed to. */
export type Asset = { type: string; etag: string; content: SharedContent };

/** The console as it was built, in memory. */
export type ConsoleBundle = {
  /** index.html, in which `NONCE_PLACEHOLDER` is replaced with the nonce of a response. */
  page: string;
  /** Files by path, such as `/assets/index-3f2a.js`. */
  assets: ReadonlyMap<string, Asset>;
};

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

const ENCODINGS: readonly { suffix: string; encoding: Encoding }[] = [
  { suffix: '', encoding: 'identity' },
  { suffix: '.br', encoding: 'br' },
  { suffix: '.gz', encoding: 'gzip' },
];

/** Reads the bundle in `folder`, which `ui/build.ts` has built. Error: it is incomplete. */
export async function readConsoleBundle(folder: string): Promise<ConsoleBundle> {
  const names = await readdir(path.join(folder, 'assets'));
  const page = await readFile(path.join(folder, 'index.html'), 'utf8');
  const assets = new Map<string, Asset>();
  for (const name of names) {
    const type = TYPES[path.extname(name)];
    // The compressed files belong to those without their suffix.
    if (type === undefined) continue;
    const content: Asset['content'] = {};
    for (const { suffix, encoding } of ENCODINGS)
      if (names.includes(name + suffix))
        content[encoding] = await readFile(path.join(folder, 'assets', name + suffix));
    const hash = createHash('sha256')
      .update(content.identity ?? '')
      .digest('base64url');
    assets.set(`/assets/${name}`, { type, etag: hash.slice(0, 22), content });
  }
  return { page, assets };
}
