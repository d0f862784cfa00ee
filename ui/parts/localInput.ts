/** The zone of the times that are typed: that of the times that are shown. */
export const zoneName = (utc: boolean): string =>
  utc ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone;

/** What a field shows of a time when it is opened: the start of the minute. */
export const minuteOf = (ms: number): string =>
  `${new Date(ms).toISOString().slice(0, 16)}:00.000Z`;

/** A time as a field of a browser has it, without a zone; empty without a time. */
export function toLocalInput(at: string | null, utc: boolean, withSeconds = false): string {
  const time = new Date(at ?? Number.NaN);
  if (Number.isNaN(time.getTime())) return '';
  const offsetMs = utc ? 0 : time.getTimezoneOffset() * 60_000;
  return new Date(time.getTime() - offsetMs).toISOString().slice(0, withSeconds ? 19 : 16);
}

/** The time that such a field has; null while it is empty. */
export function fromLocalInput(text: string, utc: boolean): string | null {
  const at = new Date(utc ? `${text}Z` : text);
  return text === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}
