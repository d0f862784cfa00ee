/** A text without percent-encoding, or the text itself if it is not well-formed. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
