/**
 * Characters that are drawn as nothing, or that change how the text around them is drawn: control and format
 * characters, line and paragraph separators, halves of surrogate pairs. A text of others that is to be decided on
 * shows each of them as a mark. Line breaks and tabs are shown as what they are, and joined emoji as one.
 */
const CONCEALED =
  /(?![\n\t]|(?<=\p{Extended_Pictographic})\uFE0F|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F])\u200D(?=\p{Extended_Pictographic}))[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

const NAMES: Readonly<Record<string, string>> = {
  'U+0000': 'null',
  'U+0007': 'bell',
  'U+0008': 'backspace',
  'U+000D': 'carriage return',
  'U+001B': 'escape',
  'U+00AD': 'soft hyphen',
  'U+061C': 'Arabic letter mark',
  'U+200B': 'zero width space',
  'U+200C': 'zero width non-joiner',
  'U+200D': 'zero width joiner',
  'U+200E': 'left-to-right mark',
  'U+200F': 'right-to-left mark',
  'U+2028': 'line separator',
  'U+2029': 'paragraph separator',
  'U+202A': 'left-to-right embedding',
  'U+202B': 'right-to-left embedding',
  'U+202C': 'pop directional formatting',
  'U+202D': 'left-to-right override',
  'U+202E': 'right-to-left override',
  'U+2060': 'word joiner',
  'U+2066': 'left-to-right isolate',
  'U+2067': 'right-to-left isolate',
  'U+2068': 'first strong isolate',
  'U+2069': 'pop directional isolate',
  'U+FEFF': 'zero width no-break space',
};

/** A concealed character, and how often it is there in a row. */
export type Mark = { code: string; name: string; count: number };

const codeOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** A text as it is: what is drawn as it is, and the marks of what is not. */
export function exactParts(text: string): (string | Mark)[] {
  const parts: (string | Mark)[] = [];
  let at = 0;
  for (const { 0: character, index } of text.matchAll(CONCEALED)) {
    if (index > at) parts.push(text.slice(at, index));
    at = index + character.length;
    const code = codeOf(character);
    const last = parts.at(-1);
    if (typeof last === 'object' && last.code === code) last.count += 1;
    else parts.push({ code, name: NAMES[code] ?? 'not visible', count: 1 });
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

/** What a mark says: `U+202E`, for several in a row `U+200B ×12`. */
export const markText = ({ code, count }: Mark): string =>
  count === 1 ? code : `${code} ×${count}`;

/** A text with marks in brackets, for what can only be text: titles, tooltips, labels. */
export const exactText = (text: string): string =>
  exactParts(text)
    .map((part) => (typeof part === 'string' ? part : `[${markText(part)}]`))
    .join('');
