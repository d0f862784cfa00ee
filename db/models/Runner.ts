import { Model, snakeCaseMappers } from 'objection';
import type { RunnerData } from '../../domain/runners/records.ts';

/** A row of `runners`. */
export class Runner extends Model implements RunnerData {
  static override tableName = 'runners';
  static override jsonAttributes = ['types'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  /** The id that the process has chosen for itself. */
  declare processId: string;
  declare pool: string;
  declare tokenId: string;
  declare name: string;
  declare version: string;
  declare slots: number;
  declare types: Record<string, string>;
  declare address: string | null;
  declare reachesTemporal: boolean;
  declare startedAt: Date;
  declare seenAt: Date;
}
