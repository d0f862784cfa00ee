import type { OpenDraft } from './draft.ts';
import { prefixesAround } from './references.ts';
import { tenantOf, writeScopesOf } from './ownership.ts';
import type { Viewer } from './planning.ts';
import { RESOURCES } from './resources/index.ts';
import { isSharedWith } from './sharing.ts';

/** References that are not up to the caller: a prefix is below the smallest one that contains it. */
const COMPUTED = 'parentPrefixId';

/**
 * The rights that new references need. A reference ties up its target: the target cannot change or
 * go without regard to the record. Within a tenant, reading the target is enough. A target of
 * another tenant must be shared with the tenant of the record, or the caller must be able to write
 * it. Catalogues are for everybody.
 */
export function checkTies(draft: OpenDraft, viewer: Viewer): void {
  const { before, after, resource, planned, snapshot } = draft;
  if (planned.errors.length > 0) return;
  const tenantId = tenantOf(resource, after);
  const movesTenant = before !== null && tenantOf(resource, before) !== tenantId;
  for (const [name, { reference, derived }] of Object.entries(resource.fields)) {
    const id = after[name];
    if (reference === undefined || reference === 'tenants' || derived || name === COMPUTED)
      continue;
    const target = RESOURCES[reference];
    if (target.scopeKind === 'catalogue' || typeof id !== 'string') continue;
    if (before?.[name] === id && !movesTenant) continue;
    const row = snapshot.get(reference, id);
    if (!row || tenantOf(target, row) === tenantId || isSharedWith(row, tenantId)) continue;
    if (name === 'vrfId' && isInOwnPrefix(draft, viewer, tenantId)) continue;
    draft.requireAlso(...writeScopesOf(snapshot, target, row));
  }
}

/** True in a prefix of the same tenant: who put that into the VRF lets the tenant use it. */
const isInOwnPrefix = (draft: OpenDraft, viewer: Viewer, tenantId: string): boolean =>
  prefixesAround(draft).some(
    (row) => row.tenantId === tenantId && viewer.isInside(RESOURCES.prefixes, row),
  );
