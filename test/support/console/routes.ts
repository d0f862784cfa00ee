import { readFileSync, globSync } from 'node:fs';
import path from 'node:path';

const UI = path.resolve(import.meta.dirname, '../../../ui');

/** The matches of a regular expression in the sources of the console. */
const matchesOf = (files: string, pattern: RegExp): RegExpExecArray[] =>
  globSync(files, { cwd: UI, exclude: ['node_modules', 'dist'] }).flatMap((file) => [
    ...readFileSync(path.join(UI, file), 'utf8').matchAll(pattern),
  ]);

/** How many routes the console creates. */
export const countRoutes = (): number => matchesOf('**/*.{ts,tsx}', /\bcreateRoute\(/g).length;

/** The paths of all pages, from the sources: a new page joins by itself. */
export function pagePaths(): string[] {
  const paths = matchesOf('**/*{R,r}oute*.{ts,tsx}', /^ {2}path: '([^']+)',$/gm);
  // `$` is every other address.
  return paths.map(([, found]) => found ?? '').filter((found) => found !== '$');
}
