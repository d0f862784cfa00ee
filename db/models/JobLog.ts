import { Model, snakeCaseMappers } from 'objection';
import type { LogLevel } from '../../domain/jobs/jobs.ts';

/** A row of `job_logs`; `line` counts from 1 without gaps within a job. */
export class JobLog extends Model {
  static override tableName = 'job_logs';
  static override idColumn = ['job_id', 'line'];
  static override jsonAttributes = ['data'];
  static override columnNameMappers = snakeCaseMappers();
  static largeColumns = ['message', 'data'];

  declare jobId: string;
  declare line: number;
  declare attempt: number;
  declare level: LogLevel;
  declare message: string;
  declare data: object | null;
  declare at: Date;
}
