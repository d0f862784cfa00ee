import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useTitle } from '../../app/useTitle.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { backupQuery, setupQuery, type Backup, type SectionName } from './backupQueries.ts';
import { titleOf } from './backupText.ts';
import { ChooseSections } from './ChooseSections.tsx';
import { PreviewStep } from './PreviewStep.tsx';
import type { RestoreSearch } from './restoreSearch.ts';

const route = getRouteApi('/frame/backups/$backupId/restore');

/** The sections in an address that the backup has; all of them without any. */
export function chosenSections({ sections }: Backup, text: string | undefined): SectionName[] {
  const named = text?.split(',') ?? [];
  const chosen = sections.filter((section) => named.includes(section));
  return chosen.length === 0 ? sections : chosen;
}

/** A restore in three steps: sections, a preview of the differences, and the confirmation. */
export function RestorePage() {
  const { backupId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data: backup, error, refetch } = useQuery(backupQuery(backupId));
  const setup = useQuery(setupQuery);
  const title = `Restore ${backup ? titleOf(backup) : ''}`;
  useTitle(title);
  const parent = { label: 'Backup', to: `/backups/${backupId}` };
  const failure = error ?? setup.error;
  if (!backup || !setup.data)
    return (
      <RecordPage parent={parent} title="Restore" id={backupId}>
        {failure ? (
          <ProblemNote
            problem={failure}
            retry={() => {
              void refetch();
              void setup.refetch();
            }}
          />
        ) : (
          <Reading height={240} label="Loading the backup" />
        )}
      </RecordPage>
    );
  const change = (next: RestoreSearch, replace = false) =>
    void navigate({ search: { ...search, ...next }, replace });
  const common = {
    backup,
    sections: setup.data.sections,
    chosen: chosenSections(backup, search.sections),
  };
  return (
    <RecordPage
      parent={parent}
      id={backupId}
      title={title}
      note="Nothing changes before you confirm the last step."
    >
      {search.preview === undefined ? (
        <ChooseSections {...common} onPreview={change} />
      ) : (
        <PreviewStep
          {...common}
          jobId={search.preview}
          accepts={search.accept === 'on'}
          onChange={change}
        />
      )}
    </RecordPage>
  );
}
