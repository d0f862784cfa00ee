import { driverErrorOf } from '../../domain/shared/driverError.ts';
import { isOutage } from '../../domain/shared/outage.ts';

/**
 * True for an unexpected failure of planning, which concerns what was planned. Failures of the
 * database and of its connections have a code or one of these messages.
 */
export const isPlanningError = (error: unknown): boolean =>
  error instanceof Error &&
  driverErrorOf(error).code === undefined &&
  !isOutage(error) &&
  !/connection|timeout|terminated|abort/i.test(error.message);
