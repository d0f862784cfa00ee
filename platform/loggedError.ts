import { driverErrorOf, type DriverError } from '../domain/shared/driverError.ts';

/** An error as a log line has it. */
export type LoggedError = {
  type: string;
  message: string;
  stack: string;
  code?: string | number;
  table?: string;
  constraint?: string;
  cause?: LoggedError;
  errors?: LoggedError[];
};

/** Causes of causes that a line has. */
const MAX_DEPTH = 5;
const MAX_ERRORS = 20;

/** A line of a stack that names a call. */
const CALL = /^ {4}at \S.*(:\d+:\d+|<anonymous>|native)\)?$/;

/** SQLSTATEs of values that PostgreSQL does not accept: the message quotes the value. */
const QUOTES_VALUE = /^22\w{3}$/;

/** How the engine ends the message about a text that is not JSON, after it has quoted the text. */
const QUOTES_TEXT = ' is not valid JSON';

/** The message, without the values that it quotes. */
function messageOf(error: Error, { code, statement }: DriverError): string {
  if (error instanceof SyntaxError && error.message.endsWith(QUOTES_TEXT))
    return 'The text is not valid JSON';
  if (typeof code !== 'string' || !QUOTES_VALUE.test(code)) return error.message;
  const prefix = typeof statement === 'string' ? `${statement} - ` : '';
  return `${prefix}PostgreSQL does not accept a value`;
}

const isErrorLike = (value: unknown): value is Error =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as { message?: unknown }).message === 'string';

/**
 * What a log line says about an error: what happened and where, without the data with which it happened.
 * Errors of drivers also have the row that was refused, parts of answers, and whole requests.
 */
export function loggedError(error: unknown, depth = 1): LoggedError {
  if (!isErrorLike(error)) return { type: typeof error, message: 'not an error', stack: '' };
  const { errors } = error as { errors?: unknown };
  const native = driverErrorOf(error);
  const { code, table, constraint } = native;
  const isDeep = depth >= MAX_DEPTH;
  const type = error.constructor.name || error.name;
  const message = messageOf(error, native);
  const calls = (error.stack ?? '').split('\n').filter((line) => CALL.test(line));
  return {
    type,
    message,
    stack: [`${type}: ${message}`, ...calls].join('\n'),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(typeof table === 'string' && { table }),
    ...(typeof constraint === 'string' && { constraint }),
    ...(isErrorLike(error.cause) && !isDeep && { cause: loggedError(error.cause, depth + 1) }),
    ...(Array.isArray(errors) &&
      !isDeep && {
        errors: errors.slice(0, MAX_ERRORS).map((each) => loggedError(each, depth + 1)),
      }),
  };
}
