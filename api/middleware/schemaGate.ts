import type { Middleware } from 'koa';
import { AppError } from '../../domain/shared/errors.ts';

const RETRY_AFTER_SECONDS = 5;

/** Refuses requests (503) while the schema of the database is not the one that this version needs. */
export const schemaGate =
  (schema: { isClosed(): boolean }): Middleware =>
  (_ctx, next) => {
    if (!schema.isClosed()) return next();
    throw new AppError('unavailable', 'This process waits for the schema of the database.', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  };
