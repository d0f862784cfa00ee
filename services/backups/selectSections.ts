import {
  isSection,
  sectionsForTenant,
  type BackupMode,
  type Section,
} from '../../domain/backups/backups.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';

/**
 * The sections that a backup request selects at the caller's tenant. Errors: `invalid_request`;
 * `permission_denied` for sections that are not available to tenants.
 */
export async function selectSections(
  access: Pick<Access, 'require'>,
  caller: Caller,
  { mode = 'full', sections = [] }: { mode?: BackupMode; sections?: readonly string[] },
): Promise<Section[]> {
  const invalid = (code: string, message: string) =>
    invalidField('body', '/sections', code, message);
  const available = sectionsForTenant(caller.tenantId);
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
  if (mode === 'partial') {
    if (selected.length === 0)
      throw invalid('required', 'must name at least one section in the mode partial');
    return available.filter((section) => selected.includes(section));
  }
  if (selected.length > 0 && available.some((section) => !selected.includes(section)))
    throw invalid(
      'sections_not_allowed',
      'must be omitted in the mode full; use the mode partial to select sections',
    );
  return available;
}
