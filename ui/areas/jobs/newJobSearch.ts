/** The address of the form for a new job: its type, and the job whose payload is copied. */
export type NewJobSearch = { type?: string | undefined; from?: string | undefined };

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

export const validateNewJobSearch = (raw: Readonly<Record<string, unknown>>): NewJobSearch => ({
  type: textOf(raw.type),
  from: textOf(raw.from),
});
