import type { GridColumn } from '../grid/types.ts';
import { labelOf, type Names } from '../names.ts';

type Layout = Pick<GridColumn<never>, 'hideBelow' | 'isOptional'> & { width?: number };

/** The column of the tenant that a record belongs to. */
export const tenantColumn = <Row extends { tenantId: string }>(
  names: Names,
  layout: Layout,
): GridColumn<Row> => ({
  id: 'tenantId',
  header: 'Tenant',
  width: 110,
  ...layout,
  cell: ({ tenantId }) => labelOf(names, tenantId, 'tenants') ?? tenantId,
  text: ({ tenantId }) => tenantId,
});
