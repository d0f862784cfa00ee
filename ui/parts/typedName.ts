import { exactText } from './exact.ts';

export type Named = { id: string; label: string };

/**
 * What is typed to confirm something about a record: its name if a person can type it, or else its id. Characters
 * that cannot be seen cannot be typed either, nor can several spaces be distinguished from one.
 */
export function typedName({ id, label }: Named): string {
  const text = label.trim();
  const isTypable =
    text !== '' &&
    exactText(text) === text &&
    text === text.normalize('NFC') &&
    !/\s{2}|[^\S ]/.test(text);
  return isTypable ? text : id;
}
