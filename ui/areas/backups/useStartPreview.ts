import { useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { joinValues } from '../../parts/list/search.ts';
import { backupKey, type Backup, type SectionName } from './backupQueries.ts';
import type { RestoreSearch } from './restoreSearch.ts';

type Wanted = { sections: readonly SectionName[]; accepts: boolean };

/** The sections of a request; without the field all of the backup. */
export const sectionsField = (backup: Backup, sections: readonly SectionName[]) =>
  sections.length === backup.sections.length ? {} : { sections: [...sections] };

/** Starts the comparison of a backup with the present records, which changes nothing. */
export function useStartPreview(backup: Backup, onStarted: (search: RestoreSearch) => void) {
  const client = useQueryClient();
  const { create, isBusy, error, reset } = useCreation({
    send: async ({ sections, accepts }: Wanted, header) => {
      const body = { backupId: backup.id, ...sectionsField(backup, sections) };
      const { jobId } = await answer(
        api.POST('/api/backup/restore/validate', {
          // The page shows how far it is, instead of waiting.
          params: { header: { ...header, Prefer: 'wait=1' } },
          body: { ...body, ...(accepts && { confirm: true }) },
        }),
      );
      return { jobId, sections, accepts };
    },
    onMade: ({ jobId, sections, accepts }) => {
      void client.invalidateQueries({ queryKey: [...backupKey(backup.id), 'runs'] });
      const isAll = sections.length === backup.sections.length;
      onStarted({
        preview: jobId,
        sections: isAll ? undefined : joinValues(sections),
        accept: accepts ? 'on' : undefined,
      });
    },
  });
  return { start: create, isBusy, error, reset };
}
