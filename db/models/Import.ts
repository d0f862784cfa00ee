import { Model, snakeCaseMappers } from 'objection';
import type { Authority } from '../../domain/shared/caller.ts';

/** A row of `imports`: a file that is being taken in. Its rows are in `import_rows`. */
export class Import extends Model {
  static override tableName = 'imports';
  static override jsonAttributes = ['authority'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare jobId: string;
  /** Null for a file of changes of several resources. */
  declare resource: string | null;
  declare dryRun: boolean;
  declare rows: number;
  declare done: number;
  /** Whom it acts for. */
  declare authority: Authority;
  declare createdBy: string;
  declare createdAt: Date;
}
