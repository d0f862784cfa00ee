import { useEffect } from 'react';
import { exactText } from '../parts/exact.ts';

/** Sets the title of the document, while the page is shown. */
export function useTitle(title: string | undefined): void {
  // With every update: the frame sets the title of the route after each navigation.
  useEffect(() => {
    if (title !== undefined) document.title = titled(title);
  });
}

export const titled = (title: string | undefined): string =>
  title === undefined ? 'Holdfast' : `${exactText(title)} · Holdfast`;
