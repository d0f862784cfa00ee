/** A text as a field has it. */
function typedValue(type: string | undefined, text: string): unknown {
  if (type === 'texts') return text.split(',');
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  const isNumber = type === 'integer' || type === 'number';
  // What is no number is shown as it is, and the service says what is wrong with it.
  const isValid = text.trim() !== '' && !Number.isNaN(Number(text));
  return isNumber && isValid ? Number(text) : text;
}

/** What the form of a new record starts with: the search parameters of its page, which are text. */
export const startValues = (
  { fields }: { fields: readonly { name: string; type: string }[] },
  given: Readonly<Record<string, string>>,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(given).map(([name, text]) => [
      name,
      typedValue(fields.find((field) => field.name === name)?.type, text),
    ]),
  );
