import { useEffect, useRef, useSyncExternalStore } from 'react';
import { currentPreferences } from './preferences.tsx';

/** Keys that do something on this page: `g j` one after the other, `Mod+k` together. */
export type Shortcut = { keys: string; label: string; run: () => void };

/** How long the second key of `g j` may follow. */
const SEQUENCE_MS = 1_500;

let shortcuts: readonly Shortcut[] = [];
const listeners = new Set<() => void>();

function change(next: readonly Shortcut[]): void {
  shortcuts = next;
  for (const listener of listeners) listener();
}

/**
 * Registers keys while the component is shown; `?` lists them. No single key decides, deletes or
 * restores anything. Keys do nothing while the user types or a dialog is open.
 */
export function useShortcuts(added: readonly Shortcut[]): void {
  const latest = useRef(added);
  useEffect(() => {
    latest.current = added;
  });
  const names = JSON.stringify(added.map(({ keys, label }) => [keys, label]));
  useEffect(() => {
    const registered = (JSON.parse(names) as [string, string][]).map(([keys, label], index) => ({
      keys,
      label,
      run: () => latest.current[index]?.run(),
    }));
    change([...shortcuts, ...registered]);
    return () => change(shortcuts.filter((shortcut) => !registered.includes(shortcut)));
  }, [names]);
}

/** All keys that do something now. */
export const useAllShortcuts = (): readonly Shortcut[] =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => shortcuts,
  );

const TYPING = 'input, textarea, select, [contenteditable], [role=textbox], [role=combobox]';

const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof Element && target.closest(TYPING) !== null;

const isDialogOpen = (): boolean => document.querySelector('[role=dialog], [role=menu]') !== null;

let first: { key: string; at: number } | undefined;

function pressed(event: KeyboardEvent): string | undefined {
  const { key, ctrlKey, metaKey, altKey } = event;
  if (altKey || event.isComposing) return undefined;
  if (ctrlKey || metaKey) return `Mod+${key.toLowerCase()}`;
  if (isTyping(event) || isDialogOpen() || !currentPreferences().singleKeys) return undefined;
  const isSecond = first !== undefined && event.timeStamp - first.at < SEQUENCE_MS;
  const keys = isSecond ? `${first?.key} ${key}` : key;
  const begins = !isSecond && shortcuts.some((shortcut) => shortcut.keys.startsWith(`${key} `));
  first = begins ? { key, at: event.timeStamp } : undefined;
  return keys;
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented) return;
  const keys = pressed(event);
  // A page that is shown later may use the key of the frame otherwise.
  const shortcut = shortcuts.findLast((each) => each.keys === keys);
  if (shortcut === undefined) return;
  event.preventDefault();
  // Also those with Ctrl: a dialog may be about the whole page, as when a session has expired.
  if (!isDialogOpen()) shortcut.run();
}

/** Listens to the keys, for as long as the frame is shown. */
export function useKeyboard(): void {
  useEffect(() => {
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
}
