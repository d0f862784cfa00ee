import { readFileSync, globSync } from 'node:fs';
import path from 'node:path';

const UI = path.resolve(import.meta.dirname, '../../../ui');

/** The paths of all pages, from the sources: a new page joins by itself. */
export function pagePaths(): string[] {
  const sources = globSync('**/*{R,r}oute*.{ts,tsx}', { cwd: UI });
  const paths = sources.flatMap((file) => [
    ...readFileSync(path.join(UI, file), 'utf8').matchAll(/^ {2}path: '([^']+)',$/gm),
  ]);
  // `$` is every other address.
  return paths.map(([, found]) => found ?? '').filter((found) => found !== '$');
}
