import { Model, snakeCaseMappers } from 'objection';
import type { RemoteTypeDefinition } from '../../domain/runners/definition.ts';
import type { RemoteTypeData, TypeState } from '../../domain/runners/records.ts';

/** A row of `job_types`: a job type that runners have announced. */
export class RemoteType extends Model implements RemoteTypeData {
  static override tableName = 'job_types';
  static override idColumn = 'name';
  static override jsonAttributes = ['definition'];
  static override columnNameMappers = snakeCaseMappers();

  declare name: string;
  declare pool: string;
  declare state: TypeState;
  declare shape: string | null;
  declare digest: string | null;
  declare definition: RemoteTypeDefinition | null;
  declare acceptedBy: string | null;
  declare acceptedAt: Date | null;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;

  /** The name, as audit entries and events call it. */
  get id(): string {
    return this.name;
  }
}
