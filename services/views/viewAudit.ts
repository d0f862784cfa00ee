import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import { View } from '../../db/models/View.ts';
import type { ViewData } from '../../domain/views/views.ts';

/** Audit entries have what a shared view has. Those of a private view contain only its existence and its list. */
export const viewRecord = recordOf<ViewData>({
  type: 'view',
  auditView: ({ list, name, search, shared }) =>
    shared ? { list, shared, name, search } : { list, shared },
});

/** Deletes the views of a tenant that is deleted. */
export async function deleteViewsOf(work: Work, trx: Knex, tenantId: string): Promise<void> {
  await trx('view_defaults').where({ tenant_id: tenantId }).del();
  const deleted = await View.query(trx).delete().where({ tenant_id: tenantId }).returning('*');
  for (const view of deleted) viewRecord.deleted(work, view, { tenantId });
}
