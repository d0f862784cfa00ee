import axe, { type Result } from 'axe-core';
import type { Page } from 'playwright-core';
import { eventually } from '../eventually.ts';

/**
 * Notes everything that a page complains about: errors in its scripts, what the Content Security Policy has
 * blocked, and assets that are missing. Answers of the API with an error are part of many tests.
 */
export function watch(page: Page, problems: string[]): void {
  page.on('pageerror', (error) => problems.push(`${page.url()}: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    const source = message.location().url || page.url();
    const isApi = URL.parse(source)?.pathname.startsWith('/api/') === true;
    const isAnswer = isApi && message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isAnswer)
      problems.push(`${page.url()}: ${message.text()} (${source})`);
  });
}

/** What an answer of Holdfast has that a test makes up. */
export const OWN = { headers: { 'x-request-id': 'req_test' } };

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** What depends on colours; everything else is the same in light and in dark. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

const THEMES = [
  { colorScheme: 'light', runOnly: { type: 'tag', values: WCAG } },
  { colorScheme: 'dark', runOnly: { type: 'rule', values: COLOUR_RULES } },
] as const;

/** Two frames after a change of the screen, all that follows from it is drawn, but for transitions. */
const DRAWN = `(async () => {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
  const finite = document.getAnimations().filter((each) => each.effect.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(finite.map((each) => each.finished));
})()`;

/** Resolves when the page shows what follows from another screen or other colours. */
const isDrawn = (page: Page): Promise<unknown> => page.evaluate(DRAWN);

/** What axe finds on a page, in light and in dark. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // The source is long: a page gets it once.
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source);
  const found: string[] = [];
  for (const { colorScheme, runOnly } of THEMES) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor();
    await isDrawn(page);
    const options = JSON.stringify({ runOnly, resultTypes: ['violations'] });
    const run = `axe.run(document, ${options}).then(({ violations }) => violations)`;
    for (const { id, help, nodes } of await page.evaluate<Result[]>(run))
      for (const { html, failureSummary } of nodes)
        found.push(`${colorScheme} ${id}: ${help}\n${html}\n${failureSummary}`);
  }
  await page.emulateMedia({ colorScheme: null });
  return found;
}

/** How wide the content of the page is on a screen of this width. */
export async function contentWidth(page: Page, width: number): Promise<number> {
  await page.setViewportSize({ width, height: 740 });
  await isDrawn(page);
  return page.evaluate<number>('document.documentElement.scrollWidth');
}

/**
 * Opens another page of the console as its links do, in the same document. Resolves when the page has its title: no
 * two pages that follow one another may have the same.
 */
export async function followPath(page: Page, path: string): Promise<void> {
  const before = await page.title();
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await eventually(
    () => page.title(),
    (title) => title !== before,
    { withinMs: 10_000 },
  );
}
