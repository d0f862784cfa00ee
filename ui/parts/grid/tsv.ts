const NEEDS_QUOTES = /["\t\n\r]/;

/**
 * A spreadsheet would run a text that starts so as a formula (CWE-1236), in some languages also with the wide
 * characters of East Asian text. Numbers with a sign are no formulas.
 */
const FORMULA = /^[=@\uFF1D\uFF0B\uFF0D\uFF20]|^[+-](?![\d.,]*$)/;

const cell = (text: string): string => {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Rows of cells as tab-separated text that spreadsheets paste as cells. */
export const toTsv = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => row.map(cell).join('\t')).join('\n');
