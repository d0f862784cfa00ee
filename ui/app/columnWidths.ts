import { readWidths, withWidths, type StoredWidths } from '../parts/grid/storedWidths.ts';
import type { WidthStore } from '../parts/grid/widths.ts';

const KEY = 'holdfast-column-widths';

function stored(): StoredWidths {
  try {
    return readWidths(JSON.parse(localStorage.getItem(KEY) ?? 'null'));
  } catch {
    return [];
  }
}

/** Widths of columns that a user has set in this browser. */
export const widthsOf = (userId: string): WidthStore => ({
  read: (list) => stored().find((each) => each.userId === userId)?.lists[list] ?? {},
  write: (list, widths) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(withWidths(stored(), userId, list, widths)));
    } catch {
      // Storage is disabled: they hold until the page is closed.
    }
  },
});
