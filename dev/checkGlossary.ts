import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/**
 * `npm run check` runs this: fails when code, docs or texts of the API use a word that docs/glossary.md rules out.
 * The words are read from the last table of that page, so that the page and the check cannot differ.
 */
const GLOSSARY = 'docs/glossary.md';

/** Recorded or generated content, pictures, the license, the names that are no more, and the page that lists the words. */
const EXCLUDED =
  /^(docs\/glossary\.md|CHANGELOG\.md|LICENSE|package-lock\.json|test\/(fixtures|replay\/histories)\/)|\.(png|svg|ico|webp|gz|woff2)$/;

type Rule = { forms: string[]; instead: string; pattern: RegExp };

const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** Between the words of a phrase there may be a line break and the start of a comment line. */
const GAP = '[\\s*/_-]+';

/** Matches a phrase as text, in camelCase, in PascalCase and in CONSTANT_CASE, but not inside a longer word. */
function formPattern(form: string): string {
  const words = form.split(' ');
  const [first = '', ...rest] = words.map(escape);
  const text = `(?<![A-Za-z])${[`[${first.charAt(0)}${first.charAt(0).toUpperCase()}]${first.slice(1)}`, ...rest].join(GAP)}(?![a-z])`;
  const camel = `(?<![A-Za-z])${first}${rest.map(capitalized).join('')}(?![a-z])`;
  const pascal = `(?<![A-Z])${words.map(escape).map(capitalized).join('')}(?![a-z])`;
  const constant = `(?<![A-Za-z])${words.map((word) => escape(word).toUpperCase()).join('_')}(?![A-Za-z])`;
  return [text, camel, pascal, constant].join('|');
}

/** The rows of the table under "Words that are out". Error: when there is none, since then nothing would be checked. */
function rulesOf(page: string): Rule[] {
  const [, section = ''] = page.split('## Words that are out');
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const list = (cell = '') =>
    cell
      .split(',')
      .map((form) => form.trim())
      .filter(Boolean);
  const rules = rows.map(([, out, instead = '', except]): Rule => {
    const allowed = list(except).map((phrase) => phrase.split(' ').map(escape).join(GAP));
    const forms = list(out);
    const pattern = forms.map(formPattern).join('|');
    // An allowed phrase is matched first, and so consumed.
    return {
      forms,
      instead,
      pattern: new RegExp(
        [...allowed.map((a) => `(?<allowed${allowed.indexOf(a)}>${a})`), pattern].join('|'),
        'g',
      ),
    };
  });
  if (rules.length === 0) throw new Error(`${GLOSSARY} has no table of words that are out`);
  return rules;
}

const isAllowed = (match: RegExpExecArray) =>
  Object.values(match.groups ?? {}).some((group) => group !== undefined);

function findings(file: string, text: string, rules: readonly Rule[]): string[] {
  return rules.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)]
      .filter((match) => !isAllowed(match))
      .map((match) => {
        const line = text.slice(0, match.index).split('\n').length;
        return `${file}:${line}: "${match[0].replace(/\s+/g, ' ')}" is out; use ${instead}`;
      }),
  );
}

const rules = rulesOf(await readFile(GLOSSARY, 'utf8'));
const only = process.argv.slice(2);
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && !EXCLUDED.test(file))
  .filter((file) => only.length === 0 || only.some((part) => file.startsWith(part)));
const found: string[] = [];
for (const file of files) {
  const text = await readFile(file, 'utf8').catch(() => '');
  found.push(
    ...findings(file, `${file}\n${text}`, rules).map((line) =>
      line.replace(/:(\d+):/, (_, n: string) => `:${Number(n) - 1}:`),
    ),
  );
}
if (found.length > 0) {
  process.stderr.write(`${found.join('\n')}\n${found.length} words that ${GLOSSARY} rules out\n`);
  process.exitCode = 1;
}
