/** Control characters, which a terminal that shows them could execute. */
// oxlint-disable-next-line no-control-regex
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** The text with control characters as `\u001b`, and without halves of surrogate pairs. */
export const escapeControls = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(
      CONTROL_CHARACTERS,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
