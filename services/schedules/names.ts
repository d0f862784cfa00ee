import { violatesUnique } from '../../db/core/constraints.ts';
import { AppError } from '../../domain/shared/errors.ts';

/** Handles the error of a write that sets this name. Error: `conflict` when it is taken. */
export const rejectTakenName =
  (name: string) =>
  (error: unknown): never => {
    if (!violatesUnique(error, 'schedules_name')) throw error;
    throw new AppError('conflict', `A schedule named ${name} already exists in the tenant.`, {
      conflicts: [
        { pointer: '/name', code: 'duplicate', message: 'is taken', resource: null, id: null },
      ],
    });
  };
