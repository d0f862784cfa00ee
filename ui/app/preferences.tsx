import { useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { PreferencesProvider, type Preferences } from '../parts/preferences.tsx';

/** What the user prefers in this browser. */
type StoredPreferences = Preferences & {
  /** Single keys such as `g j` and `/` do something (WCAG 2.2, 2.1.4: they can be turned off). */
  singleKeys: boolean;
};

const KEY = 'holdfast-preferences';
const DEFAULTS: StoredPreferences = { utc: false, density: 'compact', singleKeys: true };

function read(): StoredPreferences {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<StoredPreferences>;
    return {
      utc: stored.utc === true,
      density: stored.density === 'comfortable' ? 'comfortable' : 'compact',
      singleKeys: stored.singleKeys !== false,
    };
  } catch {
    return DEFAULTS;
  }
}

let preferences = read();
const listeners = new Set<() => void>();

function accept(next: StoredPreferences): void {
  preferences = next;
  for (const listener of listeners) listener();
}

// Another tab has changed them.
addEventListener('storage', ({ key }) => {
  if (key === KEY) accept(read());
});

export const currentPreferences = (): StoredPreferences => preferences;

export function setPreferences(change: Partial<StoredPreferences>): void {
  accept({ ...preferences, ...change });
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // Storage is disabled: they hold until the page is closed.
  }
}

export const useStoredPreferences = (): StoredPreferences =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => preferences,
  );

/** Provides the preferences to the parts. */
export function WithPreferences({ children }: { children: ReactNode }) {
  const { utc, density } = useStoredPreferences();
  const value = useMemo(() => ({ utc, density }), [utc, density]);
  return <PreferencesProvider value={value}>{children}</PreferencesProvider>;
}
