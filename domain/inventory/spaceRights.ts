import { contains, formatHost, type Span } from './cidr.ts';
import type { OpenDraft } from './draft.ts';
import { containersOf, siteOfSpace } from './inheritance.ts';
import { tenantOf, withOwnSite } from './ownership.ts';
import type { Viewer } from './planning.ts';
import { MAX_NAMED_SITES, vrfKeyOf } from './planSnapshot.ts';
import { spanOf } from './prefixTree.ts';
import { RESOURCES } from './resources/index.ts';

/**
 * The rights that a new or changed prefix or range needs for the space that it takes, besides those
 * of the record: with a site of its own it could take space, and bring records within reach, that
 * belong elsewhere in its tenant.
 */
export function checkSpace(draft: OpenDraft, viewer: Viewer): void {
  const { resource, after, planned } = draft;
  if (resource.name !== 'prefixes' && resource.name !== 'ip-ranges') return;
  if (planned.errors.length > 0 || viewer.canWrite({ tenantId: String(after.tenantId) })) return;
  if (resource.name === 'prefixes') checkSurroundings(draft);
  if (draft.hasChanged('tenantId', 'cidr', 'startAddress', 'endAddress', 'vrfId'))
    checkSitesInside(draft);
}

/**
 * A prefix takes its network from the site of the prefix around it or, without one, from its tenant.
 * A prefix that gets another site takes the records with it that belonged to the site around it.
 */
function checkSurroundings(draft: OpenDraft): void {
  const { after, snapshot } = draft;
  if (after.siteId === null || !draft.hasChanged('tenantId', 'cidr', 'vrfId', 'siteId')) return;
  const tenantId = String(after.tenantId);
  const siteId = siteOfSpace(draft);
  if (siteId === after.siteId) return;
  const key = JSON.stringify([vrfKeyOf(after), after.cidr, tenantId, siteId]);
  if (draft.hasChanged('tenantId', 'cidr', 'vrfId') || snapshot.fact('inheritedAt', key).length > 0)
    draft.requireAlso(withOwnSite(snapshot, { tenantId, siteId }));
}

/** A prefix or a range does not reach into prefixes of sites where the caller may not write. */
function checkSitesInside(draft: OpenDraft): void {
  const { after, snapshot } = draft;
  const tenantId = String(after.tenantId);
  const span = spanOf(after);
  const text = (value: bigint) => formatHost(span.family, value);
  // A network that begins at the same address sorts after a larger one, but before the address alone.
  const from = typeof after.cidr === 'string' ? after.cidr : text(span.first);
  const key = JSON.stringify([vrfKeyOf(after), from, text(span.last), tenantId]);
  // Who has changed a prefix of a site may write there, so that changed ones may count as well.
  const inside = snapshot.fact('sitesInside', key).map(({ id }) => id);
  // The fact does not list all of them.
  if (inside.length >= MAX_NAMED_SITES) draft.requireAlso({ tenantId });
  const planned = plannedSitesInside(draft, span);
  for (const siteId of [...inside, ...planned, ...crossedSites(draft, span)])
    draft.requireAlso(withOwnSite(snapshot, { tenantId, siteId }));
}

/** The sites of changed prefixes of the same tenant that start in a span. */
const plannedSitesInside = ({ after, spans }: OpenDraft, span: Span): string[] =>
  spans
    .changedPrefixesIn(vrfKeyOf(after), span)
    .flatMap(({ row: { id, tenantId, siteId } }) =>
      id !== after.id && tenantId === after.tenantId && typeof siteId === 'string' ? [siteId] : [],
    );

/** The sites of prefixes that contain the first address of a range, but not all of it. */
const crossedSites = (draft: OpenDraft, span: Span): string[] =>
  containersOf(draft, { ...span, last: span.first }).flatMap(({ row, block }) =>
    typeof row.siteId === 'string' &&
    !contains(block, span) &&
    tenantOf(RESOURCES.prefixes, row) === draft.after.tenantId
      ? [row.siteId]
      : [],
  );
