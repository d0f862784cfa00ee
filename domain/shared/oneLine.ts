/** In the class of a pattern: control characters, line breaks of Unicode, and halves of surrogate pairs. */
const NOT_IN_LINE = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\ud800-\\udfff';

const RULE = 'must be one line of text without control characters';
const TRIMMED_RULE = `${RULE}, not starting or ending with a blank`;

/** A schema of one line of text, which may be empty. */
export const ONE_LINE = { pattern: `^[^${NOT_IN_LINE}]*$`, 'x-rule': RULE } as const;

/** The same without any white space at either end. It may be empty: `minLength` refuses that with its own text. */
export const TRIMMED_LINE = {
  pattern: `^(?:[^${NOT_IN_LINE}\\s](?:[^${NOT_IN_LINE}]*[^${NOT_IN_LINE}\\s])?)?$`,
  'x-rule': TRIMMED_RULE,
} as const;

/**
 * A trimmed line without characters that nobody sees, or that change the direction of the text: two accounts could have
 * names that appear to be the same. Some scripts need the joiners U+200C and U+200D within words.
 */
export const VISIBLE_LINE = {
  pattern:
    `^(?:[^${NOT_IN_LINE}\\s\\p{Cf}]` +
    `(?:(?:[^${NOT_IN_LINE}\\p{Cf}]|[\\u200c\\u200d])*[^${NOT_IN_LINE}\\s\\p{Cf}])?)?$`,
  'x-rule': `${TRIMMED_RULE}, without invisible characters`,
} as const;

/** In the class of a pattern: what no stored text has. Text that is stored since before the rules above may have more. */
const NEVER_STORED = '\\u0000-\\u001f\\u007f\\ud800-\\udfff';

/** A schema of text that names what is stored, such as a filter or an id of another system. */
export const STORED_LINE = {
  pattern: `^(?:[^${NEVER_STORED} ](?:[^${NEVER_STORED}]*[^${NEVER_STORED} ])?)?$`,
  'x-rule':
    'must be one line of text without control characters, not starting or ending with a space',
} as const;

/** The same of a text that is searched for: it has more than white space, or is empty. */
export const LINE_WITH_TEXT = {
  pattern: `^(?:[^${NEVER_STORED}]*[^${NEVER_STORED}\\s][^${NEVER_STORED}]*)?$`,
  'x-rule': `${RULE}, and not only white space`,
} as const;
