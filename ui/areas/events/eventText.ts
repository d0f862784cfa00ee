const MAX_CHARS = 200;

const isShown = (name: string, value: unknown): boolean =>
  value !== null && value !== '' && !/Ids?$/.test(name);

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

/** The data of an event in a line. Ids are links elsewhere, and what is not set says nothing. */
export function dataText(data: Readonly<Record<string, unknown>>): string {
  const text = Object.entries(data)
    .filter(([name, value]) => isShown(name, value))
    .map(([name, value]) => `${name}: ${textOf(value)}`)
    .join(' · ');
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text;
}

/** How many events have come during a pause: `12 new`, `more than 10,000 new`. */
export const newText = ({ value, exact }: { value: number; exact: boolean }): string =>
  exact ? `${value.toLocaleString('en-US')} new` : `more than ${value.toLocaleString('en-US')} new`;
