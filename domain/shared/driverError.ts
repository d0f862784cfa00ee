/** What is read of an error of PostgreSQL, or of a connection to it. */
export type DriverError = Partial<Error> & {
  code?: unknown;
  constraint?: unknown;
  detail?: string;
  table?: unknown;
  /** The statement, with numbers instead of its values. */
  statement?: unknown;
};

/** The error of the driver in one that Knex or Objection threw; Objection wraps it. Empty for what is no error. */
export const driverErrorOf = (error: unknown): DriverError =>
  typeof error === 'object' && error !== null
    ? ((error as { nativeError?: object }).nativeError ?? error)
    : {};
