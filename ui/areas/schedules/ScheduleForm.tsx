import { Button, Select, Textarea, TextInput } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { MAX_NAME } from '../../../domain/shared/names.ts';
import { Problem } from '../../app/api.ts';
import { useJobTypes } from '../../app/jobTypes.ts';
import { errorAt, errorsUnder, objectOf } from '../../parts/form/fieldErrors.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { TargetField } from '../../parts/records/TargetField.tsx';
import { targetKindOf, targetRequest } from '../../parts/records/target.ts';
import { INCOMPLETE, SchemaForm } from '../../parts/schemaForm/SchemaForm.tsx';
import type { ScheduleDraft } from './draft.ts';
import type { FieldsProps } from './formFields.ts';
import { PolicyFields } from './PolicyFields.tsx';
import classes from './Schedules.module.css';
import { TimingFields } from './TimingFields.tsx';
import { TimingPreview } from './TimingPreview.tsx';
import type { Preview } from './usePreview.ts';

type Props = {
  draft: ScheduleDraft;
  onDraft: (draft: ScheduleDraft) => void;
  onSave: () => void;
  isSaving: boolean;
  problem: unknown;
  preview: Preview;
  /** The text of the button. */
  save: string;
  /** Where the schedule is. */
  where: { tenantId: string };
  /** Why it cannot be saved now. */
  reason?: string | undefined;
  back: { to: string; params?: { scheduleId: string } };
};

const SHOWN = Object.keys({
  name: 0,
  description: 0,
  cronExpression: 0,
  timezone: 0,
  startAt: 0,
  endAt: 0,
  jobType: 0,
  payload: 0,
  target: 0,
  overlapPolicy: 0,
  catchupWindowSeconds: 0,
  jitterSeconds: 0,
  maxRuns: 0,
  retryPolicy: 0,
} satisfies Partial<Record<keyof ScheduleDraft, 0>>).map((field) => `/${field}`);

/** The fields of a schedule, with what the service says about each. */
export function ScheduleForm(props: Props) {
  const { draft, onDraft, onSave, isSaving, problem, preview, save, where, reason, back } = props;
  const [isIncomplete, setIncomplete] = useState(false);
  const [missing, setMissing] = useState<string>();
  const saveErrors = problem instanceof Problem ? problem.errors : [];
  // The preview knows more recent mistakes of the timing than the last attempt to save.
  const timing = saveErrors.filter(({ pointer }) => !TIMING.includes(pointer));
  const errors = preview.isOutdated || preview.data ? [...timing, ...preview.errors] : saveErrors;
  const fields: FieldsProps = {
    draft,
    onChange: (change) => onDraft({ ...draft, ...change }),
    errors,
  };
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isSaving && !isIncomplete && missing === undefined) onSave();
      }}
    >
      <RefusedNote problem={problem} shown={SHOWN} />
      <NameFields {...fields} />
      <TimingFields {...fields} />
      <div className={classes.inlinePreview}>
        <TimingPreview preview={preview} timezone={draft.timezone} />
      </div>
      <JobFields {...fields} onIncomplete={setIncomplete} onMissing={setMissing} />
      <PolicyFields {...fields} />
      <div className={classes.buttons}>
        <PermissionButton
          type="submit"
          permission="schedule:write"
          where={where}
          reason={missing ?? (isIncomplete ? INCOMPLETE : reason)}
          loading={isSaving}
        >
          {save}
        </PermissionButton>
        <Button variant="default" renderRoot={(root) => <PageLink {...root} {...back} />}>
          Back
        </Button>
      </div>
    </form>
  );
}

const TIMING = ['/cronExpression', '/timezone', '/startAt', '/endAt'];

function NameFields({ draft, onChange, errors }: FieldsProps) {
  return (
    <div className={classes.fields}>
      <TextInput
        label="Name"
        required
        value={draft.name}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
        error={errorAt(errors, '/name')}
        maxLength={MAX_NAME}
      />
      <Textarea
        label="Description"
        value={draft.description}
        onChange={(event) => onChange({ description: event.currentTarget.value })}
        error={errorAt(errors, '/description')}
        autosize
        minRows={1}
        maxRows={6}
      />
    </div>
  );
}

type JobProps = FieldsProps & {
  onIncomplete: (isIncomplete: boolean) => void;
  /** Called with why nothing can run yet. */
  onMissing: (reason: string | undefined) => void;
};

/** What runs. Another job type has another payload; what was typed for one is there when it is chosen again. */
function JobFields({ draft, onChange, errors, onIncomplete, onMissing }: JobProps) {
  const types = useJobTypes();
  const typed = useRef(new Map<string, Pick<ScheduleDraft, 'payload' | 'target'>>());
  const creatable = (types.data?.items ?? []).filter(({ createdOnlyBy }) => createdOnlyBy === null);
  const type = types.data?.items.find(({ name }) => name === draft.jobType);
  const kind = type && targetKindOf(type);
  const isTargetMissing = kind !== undefined && draft.target === null;
  useEffect(
    () => onMissing(isTargetMissing ? `Choose a ${kind}.` : undefined),
    [isTargetMissing, kind, onMissing],
  );
  const names = creatable.map(({ name, summary }) => ({
    value: name,
    label: `${name}: ${summary}`,
  }));
  const isKnown = names.some(({ value }) => value === draft.jobType) || draft.jobType === '';
  return (
    <fieldset className={classes.group}>
      <legend className={classes.legendTitle}>What runs</legend>
      {types.error && <ProblemNote problem={types.error} retry={() => void types.refetch()} />}
      <Select
        label="Job type"
        required
        searchable
        allowDeselect={false}
        data={isKnown ? names : [...names, draft.jobType]}
        value={draft.jobType === '' ? null : draft.jobType}
        onChange={(jobType) => {
          if (jobType === null || jobType === draft.jobType) return;
          typed.current.set(draft.jobType, { payload: draft.payload, target: draft.target });
          onChange({ jobType, ...(typed.current.get(jobType) ?? { payload: {}, target: null }) });
        }}
        error={errorAt(errors, '/jobType')}
      />
      {kind && (
        <TargetField
          kind={kind}
          subject="Its jobs are"
          value={draft.target?.id}
          onChange={(id) => onChange({ target: targetRequest(kind, id) ?? null })}
          errors={errors}
        />
      )}
      {type && (
        <SchemaForm
          key={type.name}
          label="Payload"
          schema={type.payloadSchema}
          value={draft.payload}
          onChange={(payload) => onChange({ payload: objectOf(payload) })}
          errors={errorsUnder(errors, '/payload')}
          onIncomplete={onIncomplete}
        />
      )}
    </fieldset>
  );
}
