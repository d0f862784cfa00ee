import { Select, TextInput, UnstyledButton } from '@mantine/core';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { TimeField } from '../../parts/TimeField.tsx';
import type { FieldsProps } from './formFields.ts';
import classes from './Schedules.module.css';
import { PRESETS } from './scheduleText.ts';

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')];

/** When it runs. */
export function TimingFields(props: FieldsProps) {
  const { draft, onChange, errors } = props;
  const { cronExpression, timezone } = draft;
  const zones = ZONES.includes(timezone) ? ZONES : [timezone, ...ZONES];
  return (
    <fieldset className={classes.group}>
      <legend className={classes.legendTitle}>When</legend>
      <div className={classes.row}>
        <TextInput
          label="Expression"
          description="Minute, hour, day of month, month, day of week."
          required
          value={cronExpression}
          onChange={(event) => onChange({ cronExpression: event.currentTarget.value })}
          error={errorAt(errors, '/cronExpression')}
          placeholder="30 2 * * mon-fri"
          spellCheck={false}
          autoComplete="off"
          classNames={{ input: classes.mono }}
          maxLength={255}
        />
        <Select
          label="Time zone"
          description="Whose wall clock the expression means."
          searchable
          allowDeselect={false}
          data={zones}
          limit={60}
          value={timezone}
          onChange={(zone) => zone !== null && onChange({ timezone: zone })}
          error={errorAt(errors, '/timezone')}
          nothingFoundMessage="No such time zone"
        />
      </div>
      <Presets {...props} />
      <Bounds {...props} />
    </fieldset>
  );
}

/** Expressions to start from. */
function Presets({ draft: { cronExpression }, onChange }: FieldsProps) {
  return (
    <div className={classes.presets} role="group" aria-label="Examples">
      {PRESETS.map(({ label, expression }) => (
        <UnstyledButton
          key={expression}
          className={classes.preset}
          aria-pressed={cronExpression.trim() === expression}
          title={expression}
          onClick={() => onChange({ cronExpression: expression })}
        >
          {label}
        </UnstyledButton>
      ))}
    </div>
  );
}

/** Between which times it runs. */
function Bounds({ draft: { startAt, endAt }, onChange, errors }: FieldsProps) {
  return (
    <div className={classes.row}>
      <TimeField
        label="Not before"
        description="Empty for no bound."
        value={startAt}
        onChange={(at) => onChange({ startAt: at })}
        error={errorAt(errors, '/startAt')}
      />
      <TimeField
        label="Not after"
        description="Empty for no bound."
        value={endAt}
        onChange={(at) => onChange({ endAt: at })}
        error={errorAt(errors, '/endAt')}
      />
    </div>
  );
}
