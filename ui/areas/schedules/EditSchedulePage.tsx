import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { useEditPage } from '../../app/useEditPage.tsx';
import { useVersionedForm } from '../../parts/versioned/useVersionedForm.ts';
import { Reading } from '../../parts/Reading.tsx';
import { changeOf, draftOf, type ScheduleDraft } from './draft.ts';
import { keepWarnings } from './Notices.tsx';
import { ScheduleForm } from './ScheduleForm.tsx';
import { scheduleQuery, type Schedule } from './scheduleQueries.ts';
import classes from './Schedules.module.css';
import { TimingPreview } from './TimingPreview.tsx';
import { usePreview } from './usePreview.ts';

const route = getRouteApi('/frame/schedules/$scheduleId/edit');

const PARENT = { label: 'Schedules', to: '/schedules' };

/** Changes a schedule. What is typed stays when others change it: then each field has three states. */
export function EditSchedulePage() {
  const { scheduleId } = route.useParams();
  const { data, error, refetch } = useQuery(scheduleQuery(scheduleId));
  if (!data)
    return (
      <RecordPage parent={PARENT} title="Edit schedule" id={scheduleId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the schedule" />
        )}
      </RecordPage>
    );
  return <Editor key={scheduleId} schedule={data} />;
}

/** The form, which is saved with the version that it started from. */
function useScheduleForm(schedule: Schedule) {
  const { id } = schedule;
  const client = useQueryClient();
  return useVersionedForm<ScheduleDraft>({
    record: versionOf(schedule),
    save: async (draft, etag, started) => {
      const saved = await answer(
        api.PUT('/api/schedules/{id}', {
          params: { path: { id }, header: { 'If-Match': etag } },
          body: changeOf(draft, started),
        }),
      );
      keepWarnings(saved);
      return versionOf(saved);
    },
    readAgain: async () => versionOf(await client.query({ ...scheduleQuery(id), staleTime: 0 })),
  });
}

function Editor({ schedule }: { schedule: Schedule }) {
  const { id, tenantId } = schedule;
  const navigate = route.useNavigate();
  const form = useScheduleForm(schedule);
  const draft = form.values;
  const preview = usePreview(draft, schedule.runCount);
  const { guards, save, problem } = useEditPage({
    form,
    names: schedule.included,
    queryKey: ['schedules'],
    leave: () => navigate({ to: '/schedules/$scheduleId', params: { scheduleId: id } }),
  });
  return (
    <RecordPage
      parent={PARENT}
      id={id}
      title={`Edit ${schedule.name}`}
      form
      aside={
        <div className={classes.asidePreview}>
          <TimingPreview preview={preview} timezone={draft.timezone} />
        </div>
      }
    >
      {guards}
      <ScheduleForm
        draft={draft}
        onDraft={form.setValues}
        onSave={save}
        isSaving={form.isBusy}
        problem={problem}
        preview={preview}
        save="Save changes"
        where={{ tenantId }}
        reason={form.isDirty ? undefined : 'Nothing has been changed.'}
        back={{ to: '/schedules/$scheduleId', params: { scheduleId: id } }}
      />
    </RecordPage>
  );
}

/** The fields that the form edits, with the version that they have. */
const versionOf = (schedule: Schedule) => ({
  values: draftOf(schedule),
  etag: `"${schedule.version}"`,
});
