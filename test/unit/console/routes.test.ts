import { expect, test } from '@jest/globals';
import { countRoutes, pagePaths } from '../../support/console/routes.ts';

test('tests of pages find every route of the console', () => {
  const paths = pagePaths();
  expect(paths.length).toBeGreaterThan(70);
  // The frame has no path, and one route is for every other address.
  expect(paths).toHaveLength(countRoutes() - 2);
  expect(new Set(paths).size).toBe(paths.length);
});
