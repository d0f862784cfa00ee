import { useSyncExternalStore, type ReactNode } from 'react';
import { PreferencesProvider, type Preferences } from '../parts/preferences.tsx';

const KEY = 'holdfast-preferences';
const DEFAULTS: Preferences = { utc: false, density: 'compact', singleKeys: true };

function read(): Preferences {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Preferences>;
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

function accept(next: Preferences): void {
  preferences = next;
  for (const listener of listeners) listener();
}

// Another tab has changed them.
addEventListener('storage', ({ key }) => {
  if (key === KEY) accept(read());
});

export const currentPreferences = (): Preferences => preferences;

export function setPreferences(change: Partial<Preferences>): void {
  accept({ ...preferences, ...change });
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // Storage is disabled: they hold until the page is closed.
  }
}

export const useStoredPreferences = (): Preferences =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => preferences,
  );

/** Provides the preferences to the parts. */
export function WithPreferences({ children }: { children: ReactNode }) {
  return <PreferencesProvider value={useStoredPreferences()}>{children}</PreferencesProvider>;
}
