import { expect, test } from '@jest/globals';
import { typedName } from '../../../ui/parts/typedName.ts';

test('what is typed to confirm is the name, or the id where nobody could type the name', () => {
  const id = 'bkp_01k8qzj3m5x7c9v1b3n5m7q9w1';
  const typed = (label: string) => typedName({ id, label });
  expect(typed(' before the move ')).toBe('before the move');
  expect(typed('Zürich')).toBe('Zürich');
  const untypable = [
    ...['', '  ', 'a\u202Eb', 'zero\u200Bwidth', 'two  spaces', 'no-break\u00A0space', 'a\tb'],
    // A keyboard types one character, not a letter and an accent.
    'Zu\u0308rich',
  ];
  for (const label of untypable) expect([label, typed(label)]).toEqual([label, id]);
});
