/** A time as a field of a browser has it, local and without a zone; empty without a time. */
export function toLocalInput(at: string | null): string {
  if (at === null) return '';
  const time = new Date(at);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** The time that such a field has; null while it is empty. */
export function fromLocalInput(text: string): string | null {
  const at = new Date(text);
  return text === '' || Number.isNaN(at.getTime()) ? null : at.toISOString();
}
