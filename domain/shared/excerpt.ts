/** The first `max` characters of a text (UTF-16 units): one fewer where a surrogate pair would be cut in two. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const isPairCut = /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(max - 1, max + 1));
  return text.slice(0, isPairCut ? max - 1 : max);
}

/** A text of at most `max` characters; one that is cut ends with an ellipsis. */
export const excerpt = (text: string, max: number): string =>
  text.length > max ? `${cut(text, max - 1)}…` : text;
