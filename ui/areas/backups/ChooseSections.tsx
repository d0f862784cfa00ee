import { Button } from '@mantine/core';
import { useState } from 'react';
import { formatNumberOf } from '../../parts/format.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import type { Backup, SectionInfo, SectionName } from './backupQueries.ts';
import { permissionsOf } from './backupText.ts';
import type { RestoreSearch } from './restoreSearch.ts';
import { SectionChoice } from './SectionChoice.tsx';
import { Steps } from './Steps.tsx';
import { useStartPreview } from './useStartPreview.ts';
import classes from './Backups.module.css';

type Props = {
  backup: Backup;
  sections: readonly SectionInfo[];
  chosen: readonly SectionName[];
  onPreview: (search: RestoreSearch) => void;
};

/** The first step: which sections are restored. Comparing them needs to be allowed to read backups only. */
export function ChooseSections({ backup, sections, chosen: initial, onPreview }: Props) {
  const [chosen, setChosen] = useState<readonly SectionName[]>(initial);
  const { start, isBusy, error } = useStartPreview(backup, onPreview);
  const { whyNot } = usePermissions();
  const available = sections.filter(({ name }) => backup.sections.includes(name));
  const rowsOf = (name: string) =>
    backup.restorePreview.tables
      .filter(({ section }) => section === name)
      .reduce((sum, { rows }) => sum + rows, 0);
  const noteOf = ({ name }: SectionInfo): string => {
    const missing = permissionsOf(available, [name]).filter(
      (permission) => whyNot(permission, { tenantId: backup.tenantId }) !== undefined,
    );
    const rows = `${formatNumberOf(rowsOf(name), 'row')}.`;
    return missing.length === 0 ? rows : `${rows} Restoring it also needs ${missing.join(', ')}.`;
  };
  return (
    <form
      className={classes.report}
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen.length > 0) start({ sections: chosen, accepts: false });
      }}
    >
      <Steps present={0} />
      <RefusedNote problem={error} />
      <SectionChoice
        legend="What to restore"
        sections={available}
        chosen={chosen}
        onChosen={setChosen}
        noteOf={noteOf}
      />
      <p className={classes.muted}>
        Settings, inventory, access, webhooks, secrets and schedules become what they were: newer
        records are deleted. To jobs, events, approvals and the audit log, what is missing is added.
        Of sections that you do not choose, only missing records are added that restored ones refer
        to.
      </p>
      <div className={classes.buttons}>
        <ReasonButton
          type="submit"
          loading={isBusy}
          reason={whyNotCompare(backup, chosen)}
          icon="search"
        >
          Compare with the present records
        </ReasonButton>
        <Button
          variant="default"
          renderRoot={(root) => (
            <PageLink {...root} to="/backups/$backupId" params={{ backupId: backup.id }} />
          )}
        >
          Back
        </Button>
      </div>
    </form>
  );
}

function whyNotCompare({ status }: Backup, chosen: readonly SectionName[]): string | undefined {
  if (status !== 'completed') return `The backup is ${status}: there is no archive to read.`;
  return chosen.length === 0 ? 'Choose a section.' : undefined;
}
