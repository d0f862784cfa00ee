import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { TenantNotice, useFormTenant } from '../../app/useFormTenant.tsx';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { newDraft, requestOf } from './draft.ts';
import { keepWarnings } from './Notices.tsx';
import { ScheduleForm } from './ScheduleForm.tsx';
import classes from './Schedules.module.css';
import { TimingPreview } from './TimingPreview.tsx';
import { usePreview } from './usePreview.ts';

const PARENT = { label: 'Schedules', to: '/schedules' };

const route = getRouteApi('/frame/schedules/new');

const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Creates a schedule; the next occurrences are shown while one types. */
export function NewSchedulePage() {
  const form = useFormTenant();
  const { tenant, headers } = form;
  const navigate = useNavigate();
  const client = useQueryClient();
  const isSaved = useRef(false);
  const { jobType = '' } = route.useSearch();
  const [empty] = useState({ ...newDraft(timeZone), jobType });
  const [draft, setDraft] = useState(empty);
  const preview = usePreview(draft, 0);
  const { create, isBusy, error } = useCreation({
    send: (body: ReturnType<typeof requestOf>, header) =>
      answer(api.POST('/api/schedules', { params: { header }, headers, body })),
    onMade: (saved) => {
      const { id } = saved;
      isSaved.current = true;
      keepWarnings(saved);
      void client.invalidateQueries({ queryKey: ['schedules'] });
      void navigate({ to: '/schedules/$scheduleId', params: { scheduleId: id } });
    },
  });
  return (
    <RecordPage
      parent={PARENT}
      title="New schedule"
      note={`It belongs to the tenant ${tenant}. Its jobs have your permissions.`}
      form
      aside={
        <div className={classes.asidePreview}>
          <TimingPreview preview={preview} timezone={draft.timezone} />
        </div>
      }
    >
      <LeaveGuard
        hasChanges={() => !isSaved.current && JSON.stringify(draft) !== JSON.stringify(empty)}
      />
      <TenantNotice form={form} />
      <ScheduleForm
        draft={draft}
        onDraft={setDraft}
        onSave={() => create(requestOf(draft))}
        isSaving={isBusy}
        problem={error}
        preview={preview}
        save="Create schedule"
        where={{ tenantId: tenant }}
        back={{ to: '/schedules' }}
      />
    </RecordPage>
  );
}
