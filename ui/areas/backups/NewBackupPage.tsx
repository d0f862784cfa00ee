import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { PLATFORM } from '../../app/session/tenant.ts';
import { useCreation } from '../../app/useCreation.ts';
import { TenantNotice, useFormTenant } from '../../app/useFormTenant.tsx';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { problemFields } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { EMPTY_BACKUP, requestOf, whyIncomplete, type BackupDraft } from './backupDraft.ts';
import { BackupFields } from './BackupFields.tsx';
import { setupQuery } from './backupQueries.ts';
import { SetupNotice } from './SetupNotice.tsx';

const PARENT = { label: 'Backups', to: '/backups' };
const SHOWN = ['/label', '/mode', '/sections', '/engine', '/retention'];

const noteOf = (tenant: string): string =>
  tenant === PLATFORM.tenantId
    ? 'It contains the records of all tenants.'
    : `It contains the records of the tenant ${tenant}.`;

/** Makes a backup; its page then shows how far it is. */
export function NewBackupPage() {
  const navigate = useNavigate();
  const client = useQueryClient();
  const form = useFormTenant();
  const { tenant, headers } = form;
  const isSent = useRef(false);
  const [draft, setDraft] = useState(EMPTY_BACKUP);
  const setup = useQuery(setupQuery);
  const problems = setup.data?.storage.problems ?? [];
  const { create, isBusy, error } = useCreation({
    send: (wanted: BackupDraft, header) =>
      answer(
        api.POST('/api/backup/create', { params: { header }, headers, body: requestOf(wanted) }),
      ),
    onMade: ({ id }) => {
      isSent.current = true;
      void client.invalidateQueries({ queryKey: ['backups'] });
      void navigate({ to: '/backups/$backupId', params: { backupId: id } });
    },
  });
  const sections = (setup.data?.sections ?? []).filter(
    ({ availableToTenants }) => availableToTenants || tenant === PLATFORM.tenantId,
  );
  const reason = whyIncomplete(draft);
  return (
    <RecordPage parent={PARENT} title="New backup" note={noteOf(tenant)} form>
      <LeaveGuard
        hasChanges={() => !isSent.current && JSON.stringify(draft) !== JSON.stringify(EMPTY_BACKUP)}
      />
      <TenantNotice form={form} />
      {problems.length > 0 && <SetupNotice problems={problems} />}
      {setup.error && !setup.data && (
        <ProblemNote problem={setup.error} retry={() => void setup.refetch()} />
      )}
      <RecordForm
        problem={error}
        shown={SHOWN}
        onSubmit={() => {
          if (reason === undefined) create(draft);
        }}
        busy={isBusy}
        submit="Make backup"
        permission="backup:write"
        where={{ tenantId: tenant }}
        reason={reason ?? problems[0]?.message}
        back="/backups"
      >
        <BackupFields
          draft={draft}
          onChange={(change) => setDraft((old) => ({ ...old, ...change }))}
          errors={problemFields(error).errors}
          setup={setup.data}
          sections={sections}
        />
      </RecordForm>
    </RecordPage>
  );
}
