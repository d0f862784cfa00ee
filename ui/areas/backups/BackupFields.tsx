import { NumberInput, Radio, TextInput } from '@mantine/core';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { labelOfField } from '../../parts/format.ts';
import type { FieldError } from '../../parts/problems.ts';
import { RETENTION_FIELDS, type BackupDraft } from './backupDraft.ts';
import type { BackupSetup, SectionInfo } from './backupQueries.ts';
import { referredTo } from './backupText.ts';
import { SectionChoice } from './SectionChoice.tsx';
import classes from './Backups.module.css';
import { typedNumber } from '../../parts/form/typedNumber.ts';

type Props = {
  draft: BackupDraft;
  onChange: (change: Partial<BackupDraft>) => void;
  errors: readonly FieldError[];
  setup: BackupSetup | undefined;
  /** The sections that backups of the tenant may contain. */
  sections: readonly SectionInfo[];
};

/** What a backup contains, what it is called, and how many of its series are kept. */
export function BackupFields(props: Props) {
  const { draft, onChange, errors } = props;
  return (
    <>
      <TextInput
        label="Label"
        description="Backups with the same label and contents form a series"
        maxLength={200}
        autoComplete="off"
        value={draft.label}
        onChange={(event) => onChange({ label: event.currentTarget.value })}
        error={errorAt(errors, '/label')}
      />
      <Contents {...props} />
      <Engine {...props} />
      <Retention {...props} />
    </>
  );
}

function Contents({ draft, onChange, errors, sections }: Props) {
  const includes = referredTo(sections, draft.sections).filter((name) =>
    sections.some((section) => section.name === name),
  );
  const wrong = errors.find(({ pointer }) => pointer.startsWith('/sections'));
  return (
    <>
      <Radio.Group
        label="Contents"
        value={draft.mode}
        onChange={(mode) => onChange({ mode: mode === 'partial' ? 'partial' : 'full' })}
        error={errorAt(errors, '/mode')}
      >
        <div className={classes.choices}>
          <Radio value="full" label="Everything" size="xs" />
          <Radio value="partial" label="Chosen sections, and what they refer to" size="xs" />
        </div>
      </Radio.Group>
      {draft.mode === 'partial' && (
        <SectionChoice
          legend="Sections"
          sections={sections}
          chosen={draft.sections}
          onChosen={(chosen) => onChange({ sections: chosen })}
          noteOf={({ name }) => (includes.includes(name) ? 'Included by reference.' : undefined)}
          error={wrong?.detail}
        />
      )}
    </>
  );
}

function Engine({ draft, onChange, errors, setup }: Props) {
  const engines = setup?.engines ?? [];
  const chosen = draft.engine ?? engines.find((engine) => engine.default)?.name ?? '';
  if (engines.length === 0) return null;
  return (
    <Radio.Group
      label="Engine"
      value={chosen}
      onChange={(name) => onChange({ engine: engines.find((each) => each.name === name)?.name })}
      error={errorAt(errors, '/engine')}
    >
      <div className={classes.choices}>
        {engines.map(({ name, summary }) => (
          <Radio
            key={name}
            value={name}
            label={labelOfField(name)}
            description={summary}
            size="xs"
          />
        ))}
      </div>
    </Radio.Group>
  );
}

function Retention({ draft, onChange, errors }: Props) {
  const { retention } = draft;
  return (
    <fieldset className={classes.sections}>
      <legend>Retention</legend>
      <p className={classes.muted}>
        How many backups of the series are kept after this one: the last ones, and the last of each
        day, week and month in UTC. The others are deleted. All are kept if every number is empty.
      </p>
      <div className={classes.numbers}>
        {RETENTION_FIELDS.map((field) => (
          <NumberInput
            key={field}
            label={labelOfField(field)}
            min={1}
            max={1_000}
            allowDecimal={false}
            clampBehavior="none"
            value={retention[field]}
            onChange={(value) =>
              onChange({ retention: { ...retention, [field]: typedNumber(value) } })
            }
            error={errorAt(errors, `/retention/${field}`)}
          />
        ))}
      </div>
    </fieldset>
  );
}
