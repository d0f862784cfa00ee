import {
  isSection,
  sectionsForTenant,
  type BackupMode,
  type Section,
} from '../../domain/backups/backups.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Warning } from '../../domain/shared/warnings.ts';
import type { Access } from '../access/access.ts';

type SectionRequest = { mode?: BackupMode; sections?: readonly string[] };

/**
 * Removes the sections from a request in the mode `full`, which includes all sections anyway. The
 * warning says so when the caller named only some of them.
 */
export function ignoreSectionsOfFull<R extends SectionRequest>(
  { tenantId }: Pick<Caller, 'tenantId'>,
  request: R,
): { request: R; warnings: Warning[] } {
  const { mode = 'full', sections, ...rest } = request;
  if (mode !== 'full' || sections === undefined) return { request, warnings: [] };
  const isSubset =
    sections.length > 0 &&
    sectionsForTenant(tenantId).some((section) => !sections.includes(section));
  const warning = {
    code: 'sections_ignored',
    pointer: '/sections',
    message: 'is ignored in the mode full; use the mode partial to select sections',
  };
  // The rest has all fields of the request but the two that are optional in it.
  const withoutSections = { ...rest, ...(request.mode && { mode }) } as R;
  return { request: withoutSections, warnings: isSubset ? [warning] : [] };
}

/**
 * The sections that a backup request selects at the caller's tenant. The mode `full`, and `partial`
 * without sections, select all of them. Errors: `invalid_request`; `permission_denied` for sections
 * that are not available to tenants.
 */
export async function selectSections(
  access: Pick<Access, 'require'>,
  caller: Caller,
  { mode = 'full', sections = [] }: SectionRequest,
): Promise<Section[]> {
  const invalid = (code: string, message: string) =>
    invalidField('body', '/sections', code, message);
  const available = sectionsForTenant(caller.tenantId);
  if (mode === 'full' || sections.length === 0) return available;
  const selected = sections.filter(isSection);
  if (selected.length < sections.length)
    throw invalid('unknown_section', `must be among ${available.join(', ')}`);
  if (selected.some((section) => !available.includes(section))) {
    await access.require(caller, 'backup:write', { tenantId: PLATFORM });
    throw invalid(
      'section_not_allowed',
      `for the backup of a tenant must be among ${available.join(', ')}`,
    );
  }
  return available.filter((section) => selected.includes(section));
}
