import { recordOf } from '../../db/core/recordAudit.ts';
import type { ViewData } from '../../domain/views/views.ts';

/** Audit entries have what a shared view has. Of a private one they say that there is one, and of which list. */
export const viewRecord = recordOf<ViewData>({
  type: 'view',
  auditView: ({ list, name, search, shared }) =>
    shared ? { list, shared, name, search } : { list, shared },
});
