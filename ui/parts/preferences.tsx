import { createContext, use } from 'react';
import type { Density } from './list/search.ts';

/** What a user prefers everywhere. The frame keeps it; the parts read it. */
export type Preferences = {
  /** Shows times in UTC instead of the local time zone. */
  utc: boolean;
  /** Height of rows, unless the address of a page says otherwise. */
  density: Density;
  /** Single keys such as `g j` and `x` do something (WCAG 2.2, 2.1.4: they can be turned off). */
  singleKeys: boolean;
};

const PreferencesContext = createContext<Preferences>({
  utc: false,
  density: 'compact',
  singleKeys: true,
});

export const PreferencesProvider = PreferencesContext.Provider;

export const usePreferences = (): Preferences => use(PreferencesContext);
