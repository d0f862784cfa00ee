import type { OpenDraft } from './draft.ts';
import type { Viewer } from './planning.ts';
import { collectMissing } from './planSnapshot.ts';

/**
 * Adds a conflict for each record that the mutation would delete and a legal hold keeps. The hold is
 * named only for callers who may read it.
 */
export function checkHolds(draft: OpenDraft, viewer: Viewer): void {
  collectMissing(draft.deleted(), ({ resource, id }) => {
    const [hold] = draft.snapshot.fact('legalHolds', `${resource}/${id}`);
    if (!hold) return;
    const what = id === draft.after.id ? 'it' : 'a record that would be deleted with it';
    const mayRead = viewer.holds(['hold:read'], { tenantId: hold.label });
    const named = mayRead ? { resource: hold.resource, id: hold.id } : null;
    draft.conflict('legal_hold', `a legal hold keeps ${what}`, named);
  });
}
