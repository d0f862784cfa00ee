/** A part of a text of the API: words, the id of a record or an account, or a time. */
export type TextPart =
  { kind: 'words'; text: string } | { kind: 'id'; id: string } | { kind: 'time'; time: string };

const PARTS = /\b([a-z]{3}_[0-9a-z]{26}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)\b/g;

/** Splits a text of the API, so that ids are shown as names and times in the zone of the reader. */
export function partsOfText(text: string): TextPart[] {
  return text.split(PARTS).flatMap((part, index): TextPart[] => {
    if (part === '') return [];
    if (index % 2 === 0) return [{ kind: 'words', text: part }];
    return part.includes('_') ? [{ kind: 'id', id: part }] : [{ kind: 'time', time: part }];
  });
}
