/** The text of one cell that was copied from a spreadsheet, without the line break that ends it; undefined for other text. */
export function cellText(pasted: string): string | undefined {
  const text = pasted.replace(/[\r\n]+$/, '');
  return text === pasted || /[\r\n]/.test(text) ? undefined : text;
}
