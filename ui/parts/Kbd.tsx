import { Kbd as Key } from '@mantine/core';

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Names of keys on this machine. `Mod` is the key of shortcuts. */
const NAMES: Readonly<Record<string, string>> = {
  Mod: isApple ? '⌘' : 'Ctrl',
  Shift: isApple ? '⇧' : 'Shift',
  ArrowUp: '↑',
  ArrowDown: '↓',
  ArrowLeft: '←',
  ArrowRight: '→',
  Escape: 'Esc',
};

/** Keys as they are pressed: `Mod+K` together, `g j` one after the other. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span>
      {keys.split(/([ +])/).map((part, index) =>
        part === ' ' || part === '+' ? (
          // The same keys stay at the same positions.
          <span key={index}>{part === '+' ? '+' : ' then '}</span>
        ) : (
          <Key key={index} size="xs">
            {NAMES[part] ?? part}
          </Key>
        ),
      )}
    </span>
  );
}
