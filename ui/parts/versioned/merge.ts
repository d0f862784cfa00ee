import { isSameValue } from '../diff/change.ts';

/** Who has changed a field since both started from the same record. */
export type Changer = 'nobody' | 'you' | 'others' | 'both';

export type MergedField = {
  field: string;
  base: unknown;
  mine: unknown;
  theirs: unknown;
  changedBy: Changer;
};

type Values = Readonly<Record<string, unknown>>;

/** Whose value of a field is kept, if both have changed it. */
export type Choices = Readonly<Record<string, 'mine' | 'theirs' | undefined>>;

/**
 * Compares three states of a record field by field: as it was read, as the form has it, and as it is
 * now. A field that both have changed to the same value is not a conflict. A field that a state does not have is
 * undefined in it.
 */
export function compareThree(base: Values, mine: Values, theirs: Values): MergedField[] {
  return [...new Set([...Object.keys(mine), ...Object.keys(theirs)])].map((field) => {
    const values = { base: base[field], mine: mine[field], theirs: theirs[field] };
    const isMine = !isSameValue(values.base, values.mine);
    const isTheirs = !isSameValue(values.base, values.theirs);
    const isSame = isSameValue(values.mine, values.theirs);
    const changedBy: Changer = isMine
      ? isTheirs && !isSame
        ? 'both'
        : isTheirs
          ? 'others'
          : 'you'
      : isTheirs
        ? 'others'
        : 'nobody';
    return { field, ...values, changedBy };
  });
}

/** The fields that need a choice, because both have changed them. */
export const conflictsIn = (fields: readonly MergedField[]): MergedField[] =>
  fields.filter(({ changedBy }) => changedBy === 'both');

/** The record with your changes on what it is now. A conflict without a choice keeps your value. */
export const mergeWith = (
  fields: readonly MergedField[],
  choices: Choices,
): Record<string, unknown> =>
  Object.fromEntries(
    fields.map(({ field, mine, theirs, changedBy }) => {
      const takesMine =
        changedBy === 'you' || (changedBy === 'both' && choices[field] !== 'theirs');
      return [field, takesMine ? mine : theirs];
    }),
  );
