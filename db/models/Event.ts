import { Model, snakeCaseMappers } from 'objection';

/**
 * A row of `events`; `sequence` is null until it is published. `position`, which PostgreSQL assigns when the
 * row is written, decides in which order that happens.
 */
export class Event extends Model {
  static override tableName = 'events';
  static override jsonAttributes = ['data'];
  static largeColumns = ['data'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare sequence: number | null;
  declare position: number;
  declare type: string;
  declare tenantId: string;
  declare subjectType: string;
  declare subjectId: string;
  declare actorId: string;
  declare data: Record<string, unknown>;
  declare createdAt: Date;
}
