import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

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

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** What depends on colours; everything else is the same in light and in dark. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/** What axe finds on a page, in light and in dark. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const axe = new AxeBuilder({ page }).setLegacyMode();
    const rules = colorScheme === 'light' ? axe.withTags(WCAG) : axe.withRules(COLOUR_RULES);
    const { violations } = await rules.analyze();
    for (const { id, help, nodes } of violations)
      for (const { html, failureSummary } of nodes)
        found.push(`${colorScheme} ${id}: ${help}\n${html}\n${failureSummary}`);
  }
  await page.emulateMedia({ colorScheme: null });
  return found;
}
