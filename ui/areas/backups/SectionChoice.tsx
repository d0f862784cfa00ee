import { Button, Checkbox } from '@mantine/core';
import type { SectionInfo, SectionName } from './backupQueries.ts';
import { labelOfField } from '../../parts/format.ts';
import classes from './Backups.module.css';

type Props = {
  legend: string;
  /** Those that can be chosen. */
  sections: readonly SectionInfo[];
  chosen: readonly SectionName[];
  onChosen: (chosen: SectionName[]) => void;
  /** What else is to be said about a section, such as the permissions that it needs. */
  noteOf?: ((section: SectionInfo) => string | undefined) | undefined;
  error?: string | undefined;
};

/** Chooses parts of the data; of each it says what it contains and what it refers to. */
export function SectionChoice({ legend, sections, chosen, onChosen, noteOf, error }: Props) {
  const toggle = (name: SectionName) =>
    onChosen(
      sections
        .map((section) => section.name)
        .filter((each) => chosen.includes(each) !== (each === name)),
    );
  return (
    <fieldset className={classes.sections}>
      <legend>{legend}</legend>
      <div className={classes.buttons}>
        <Button
          variant="default"
          size="compact-xs"
          onClick={() => onChosen(sections.map(({ name }) => name))}
        >
          All
        </Button>
        <Button variant="default" size="compact-xs" onClick={() => onChosen([])}>
          None
        </Button>
      </div>
      {sections.map((section) => (
        <Checkbox
          key={section.name}
          label={labelOfField(section.name)}
          description={describe(section, noteOf?.(section))}
          checked={chosen.includes(section.name)}
          onChange={() => toggle(section.name)}
          size="xs"
        />
      ))}
      {error !== undefined && (
        <span className={classes.error} role="alert">
          {error}
        </span>
      )}
    </fieldset>
  );
}

function describe({ summary, refersTo }: SectionInfo, note: string | undefined): string {
  const refers = refersTo.length === 0 ? '' : ` Refers to ${refersTo.join(', ')}.`;
  return `${summary}.${refers}${note === undefined ? '' : ` ${note}`}`;
}
