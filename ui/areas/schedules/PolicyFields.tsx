import { Collapse, NumberInput, Radio, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../../app/api.ts';
import { useJobTypes } from '../../app/jobTypes.ts';
import { formatDuration } from '../../parts/format.ts';
import { errorAt, errorsUnder } from '../../parts/form/fieldErrors.ts';
import { RetryPolicyFields } from '../../parts/form/RetryPolicyFields.tsx';
import { Icon } from '../../parts/icons.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import type { FieldsProps } from './formFields.ts';
import classes from './Schedules.module.css';
import { OVERLAP_TEXTS } from './scheduleText.ts';
import { typedNumber } from '../../parts/form/typedNumber.ts';

const OVERLAPS = Object.entries(OVERLAP_TEXTS) as [
  Schemas['OverlapPolicy'],
  (typeof OVERLAP_TEXTS)['skip'],
][];

const inWords = (seconds: number | ''): string =>
  seconds === '' || seconds < 60 ? '' : ` (${formatDuration(seconds * 1_000)})`;

/** What happens if something is late or still runs. */
export function PolicyFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { canAnywhere } = usePermissions();
  return (
    <fieldset className={classes.group}>
      <legend className={classes.legendTitle}>If a job still runs, or it is late</legend>
      <Radio.Group
        label="At an occurrence while a job of the schedule is unfinished"
        value={draft.overlapPolicy}
        onChange={(policy) => onChange({ overlapPolicy: policy })}
        error={errorAt(errors, '/overlapPolicy')}
      >
        <div className={classes.choices}>
          {OVERLAPS.map(([policy, { label, detail }]) => (
            <Radio
              key={policy}
              {...{ size: 'xs', value: policy, label, description: detail }}
              disabled={policy === 'cancelOther' && !canAnywhere('job:cancel')}
            />
          ))}
        </div>
      </Radio.Group>
      <div className={classes.row}>
        <NumberInput
          label="Catch-up window"
          description={`How late an occurrence may still run${inWords(draft.catchupWindowSeconds)}.`}
          suffix=" s"
          min={10}
          clampBehavior="none"
          value={draft.catchupWindowSeconds}
          onChange={(value) => onChange({ catchupWindowSeconds: typedNumber(value) })}
          error={errorAt(errors, '/catchupWindowSeconds')}
        />
        <NumberInput
          label="Random delay"
          description={`Each run waits up to this long${inWords(draft.jitterSeconds)}.`}
          suffix=" s"
          min={0}
          clampBehavior="none"
          value={draft.jitterSeconds}
          onChange={(value) => onChange({ jitterSeconds: typedNumber(value) })}
          error={errorAt(errors, '/jitterSeconds')}
        />
        <NumberInput
          label="Runs"
          description="After this number the schedule has ended; empty for no limit."
          min={1}
          clampBehavior="none"
          value={draft.maxRuns}
          onChange={(value) => onChange({ maxRuns: typedNumber(value) })}
          error={errorAt(errors, '/maxRuns')}
        />
      </div>
      <Retries {...props} />
    </fieldset>
  );
}

function Retries({ draft, onChange, errors }: FieldsProps) {
  const own = errorsUnder(errors, '/retryPolicy');
  const [isOpen, setOpen] = useState(Object.keys(draft.retryPolicy).length > 0);
  const types = useJobTypes();
  const isShown = isOpen || own.length > 0;
  return (
    <div>
      <UnstyledButton
        aria-expanded={isShown}
        className={classes.disclosure}
        onClick={() => setOpen(!isShown)}
      >
        <Icon name={isShown ? 'chevronDown' : 'chevronRight'} size={14} /> Retry policy of the jobs
      </UnstyledButton>
      <Collapse expanded={isShown}>
        <RetryPolicyFields
          value={draft.retryPolicy}
          onChange={(retryPolicy) => onChange({ retryPolicy })}
          defaults={types.data?.items.find(({ name }) => name === draft.jobType)?.retryPolicy}
          errors={own}
        />
      </Collapse>
    </div>
  );
}
