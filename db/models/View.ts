import { Model, snakeCaseMappers } from 'objection';
import type { ViewData } from '../../domain/views/views.ts';

/** A row of `views`. */
export class View extends Model implements ViewData {
  static override tableName = 'views';
  static override jsonAttributes = ['search'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare list: string;
  declare name: string;
  declare search: Record<string, string>;
  declare shared: boolean;
  declare owner: string;
  declare createdBy: string;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}
