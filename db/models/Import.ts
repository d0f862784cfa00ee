import { Model, snakeCaseMappers } from 'objection';
import type { ImportMode } from '../../domain/inventory/importLimits.ts';
import type { Authority } from '../../domain/shared/caller.ts';

/** An imported file. Its rows are in `import_rows`. */
export class Import extends Model {
  static override tableName = 'imports';
  static override jsonAttributes = ['authority', 'counts'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare jobId: string;
  /** Null for a file of mutations of several resources. */
  declare resource: string | null;
  declare dryRun: boolean;
  declare mode: ImportMode;
  /** The dry run whose rows it writes; null for a file of its own. */
  declare dryRunId: string | null;
  /** The number of rows of the file, and of those that have an outcome. */
  declare rows: number;
  declare done: number;
  /** The number of rows for each outcome. Read them with `countOutcomes`. */
  declare counts: Readonly<Record<string, number>>;
  /** Whose rights apply to the rows. */
  declare authority: Authority;
  declare createdBy: string;
  declare createdAt: Date;
}
