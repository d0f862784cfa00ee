import { useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { notifyOutcome } from './notify.ts';
import { LeaveGuard } from '../parts/form/LeaveGuard.tsx';
import type { Names } from '../parts/names.ts';
import { FormConflict } from '../parts/versioned/FormConflict.tsx';
import type { Saving, useVersionedForm } from '../parts/versioned/useVersionedForm.ts';

type Options<Values extends Record<string, unknown>> = {
  form: ReturnType<typeof useVersionedForm<Values>>;
  names?: Names | undefined;
  /** The first part of the keys of all queries that a saved record makes out of date. */
  queryKey: readonly [string];
  /** Leads to the page of the saved record. */
  leave: () => unknown;
};

/**
 * How a page saves the record that it changes. It leads away when everything typed is saved.
 * `guards`, which the page shows, asks before changes are lost, and shows what others have changed.
 */
export function useEditPage<Values extends Record<string, unknown>>(options: Options<Values>) {
  const { form, names, queryKey, leave } = options;
  const client = useQueryClient();
  const isSaved = useRef(false);
  const finish = (saving: Saving) => {
    if (saving === 'failed') return;
    void client.invalidateQueries({ queryKey });
    if (saving === 'typedOn') {
      notifyOutcome('Saved', 'Your latest changes are not saved yet.');
      return;
    }
    isSaved.current = true;
    void leave();
  };
  const guards = (
    <>
      <LeaveGuard hasChanges={() => form.isDirty && !isSaved.current} />
      <FormConflict form={form} names={names} onSaving={finish} />
    </>
  );
  return {
    guards,
    save: () => void form.submit().then(finish),
    /** Leaves without a question: what was typed has become something else, such as a request. */
    allowLeave: () => {
      isSaved.current = true;
    },
    /** What the form shows: a conflict has its own dialog. */
    problem: form.conflict ? undefined : form.problem,
  };
}
