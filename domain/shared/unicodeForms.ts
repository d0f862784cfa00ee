/**
 * A text as it was sent, and in the Unicode form NFC, which most stored texts have. A filter or a search compares
 * with both: what is stored stays as it was sent, also in another form.
 */
export const unicodeForms = (text: string): string[] => [...new Set([text, text.normalize('NFC')])];
