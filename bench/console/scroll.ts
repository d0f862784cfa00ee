import type { Page } from 'playwright-core';

export type ScrollReport = {
  /** Rows of the grid. */
  rows: number;
  /** Frames in which a part of the grid had no row. */
  blank: number;
  frameMs: number[];
};

type Scroll = { frames: number; pixels: number };

/** Runs in the page. As text, since Node's types know no documents. */
const SCROLL = `async ({ frames, pixels }) => {
  const grid = document.querySelector('[role=grid]');
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const isCovered = () => {
    const { left, right, top, bottom } = grid.getBoundingClientRect();
    for (let y = top + 60; y < bottom - 30; y += 24)
      if (!document.elementFromPoint((left + right) / 2, y)?.closest('[role=row]')) return false;
    return true;
  };
  const frameMs = [];
  let blank = 0;
  let last = await frame();
  for (let n = 0; n < frames; n++) {
    grid.scrollTop += pixels;
    // This frame is painted before the grid hears of it.
    if (!isCovered()) blank += 1;
    const now = await frame();
    frameMs.push(now - last);
    last = now;
  }
  return { rows: Number(grid.getAttribute('aria-rowcount')) - 1, blank, frameMs };
}`;

/** Scrolls the grid of a page by `pixels` in each of `frames` frames, and notes what was painted. */
export const watchScroll = (page: Page, scroll: Scroll): Promise<ScrollReport> =>
  page.evaluate<ScrollReport>(`(${SCROLL})(${JSON.stringify(scroll)})`);
