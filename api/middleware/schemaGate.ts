import type { Middleware } from 'koa';
import { AppError } from '../../domain/shared/errors.ts';

const RETRY_AFTER_SECONDS = 5;

/** Refuses requests (503) while the schema of the database is not the one that this version needs. */
export const schemaGate =
  (schema: { isOpen(): Promise<boolean> }): Middleware =>
  async (_ctx, next) => {
    if (!(await schema.isOpen()))
      throw new AppError('unavailable', 'This process waits for the schema of the database.', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    await next();
  };
