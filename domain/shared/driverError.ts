/** What is read of an error of PostgreSQL, or of a connection to it. */
export type DriverError = Partial<Error> & {
  code?: unknown;
  constraint?: unknown;
  detail?: string;
  table?: unknown;
  /** The statement, with numbers instead of its values. */
  statement?: unknown;
  /** The connection could not be opened: the server cannot be reached, or refuses the client. */
  isConnectFailure?: boolean;
};

/** The error of the driver in one that Knex or Objection threw; Objection wraps it. Empty for what is no error. */
export const driverErrorOf = (error: unknown): DriverError =>
  typeof error === 'object' && error !== null
    ? ((error as { nativeError?: object }).nativeError ?? error)
    : {};

/** Marks the errors of `work`, which opens a connection. */
export async function openingConnection<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asConnectFailure(error);
  }
}

/** Marks an error of a connection that was being opened. Returns it. */
export const asConnectFailure = <T>(error: T): T =>
  typeof error === 'object' && error !== null
    ? Object.assign(error, { isConnectFailure: true })
    : error;
