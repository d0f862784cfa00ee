import { Button, Radio } from '@mantine/core';
import { useState } from 'react';
import { Dialog, useBusyDialog } from '../Dialog.tsx';
import { labelOfField } from '../format.ts';
import { labelOf, type Names } from '../names.ts';
import { RefusedNote } from '../RefusedNote.tsx';
import { stableJson } from '../diff/change.ts';
import type { Choices, MergedField } from './merge.ts';
import type { VersionConflict } from './useVersionedForm.ts';
import classes from './ConflictDialog.module.css';

type Props = {
  conflict: VersionConflict | undefined;
  title?: string;
  /** Text of the button that changes nothing. */
  back?: string;
  names?: Names | undefined;
  /** Names of fields; default: their names as words. */
  labels?: Readonly<Record<string, string>> | undefined;
  busy: boolean;
  /** Why saving again has failed. */
  problem?: unknown;
  onSave: (choices: Choices) => void;
  onDiscard: () => void;
  onClose: () => void;
};

const text = (value: unknown, names: Names | undefined): string => {
  if (value === null || value === undefined || value === '') return 'not set';
  if (typeof value === 'string') return labelOf(names, value) ?? value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return stableJson(value);
};

type RowProps = {
  field: MergedField;
  label: string;
  names: Names | undefined;
  choice: 'mine' | 'theirs';
  onChoice: (choice: 'mine' | 'theirs') => void;
};

function FieldRow({ field, label, names, choice, onChoice }: RowProps) {
  const { base, mine, theirs, changedBy } = field;
  const cell = (side: 'mine' | 'theirs', title: string, value: unknown) => {
    const isTaken =
      changedBy === 'both' ? choice === side : (changedBy === 'you') === (side === 'mine');
    return (
      <td className={classes.value} data-taken={isTaken || undefined} data-label={title}>
        {changedBy === 'both' ? (
          <Radio
            name={`choice ${field.field}`}
            size="xs"
            checked={isTaken}
            onChange={() => onChoice(side)}
            label={text(value, names)}
          />
        ) : (
          text(value, names)
        )}
      </td>
    );
  };
  return (
    <tr>
      <th scope="row" className={classes.field}>
        {label}
      </th>
      <td className={classes.value} data-label="When you opened it">
        {text(base, names)}
      </td>
      {cell('theirs', 'Now', theirs)}
      {cell('mine', 'Yours', mine)}
    </tr>
  );
}

/**
 * Another user has saved the record first: shows each field as it was, as it is now and as you want it.
 * What both have changed needs a choice; what only one has changed is kept.
 */
export function ConflictDialog(props: Props) {
  const { conflict, title = 'The record has changed in the meantime', onClose } = props;
  return (
    <Dialog opened={conflict !== undefined} onClose={onClose} title={title} size="xl">
      <Content {...props} />
    </Dialog>
  );
}

function Content(props: Props) {
  const { conflict, names, labels, busy, problem, onSave, onDiscard, onClose } = props;
  const { back = 'Back to the form' } = props;
  useBusyDialog(busy);
  const [choices, setChoices] = useState<Choices>({});
  const changed = (conflict?.fields ?? []).filter(({ changedBy }) => changedBy !== 'nobody');
  return (
    <>
      <p className={classes.intro}>
        Nothing is saved yet. Marked values are what would be saved; choose where both of you have
        changed a field.
      </p>
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">When you opened it</th>
            <th scope="col">Now</th>
            <th scope="col">Yours</th>
          </tr>
        </thead>
        <tbody>
          {changed.map((field) => (
            <FieldRow
              key={field.field}
              field={field}
              label={labels?.[field.field] ?? labelOfField(field.field)}
              names={names}
              choice={choices[field.field] ?? 'mine'}
              onChoice={(choice) => setChoices({ ...choices, [field.field]: choice })}
            />
          ))}
        </tbody>
      </table>
      <RefusedNote problem={problem} />
      <div className={classes.buttons}>
        <Button variant="default" onClick={onClose} disabled={busy} data-autofocus>
          {back}
        </Button>
        <Button variant="default" onClick={onDiscard} disabled={busy}>
          Discard my changes
        </Button>
        <Button onClick={() => onSave(choices)} loading={busy}>
          Save the marked values
        </Button>
      </div>
    </>
  );
}
