import type { Names } from '../names.ts';
import { problemFields } from '../problems.ts';
import { ConflictDialog } from './ConflictDialog.tsx';
import type { Saving, useVersionedForm } from './useVersionedForm.ts';

type Props<Values extends Record<string, unknown>> = {
  form: ReturnType<typeof useVersionedForm<Values>>;
  names?: Names | undefined;
  title?: string;
  /** What follows when the choices were sent. */
  onSaving: (saving: Saving) => void;
};

/** Shows what others have changed while a form was filled in, and saves what is chosen of both. */
export function FormConflict<Values extends Record<string, unknown>>({
  form,
  names,
  title,
  onSaving,
}: Props<Values>) {
  // That the version is no longer the present one is what the dialog is about.
  const isStale = problemFields(form.problem).status === 412;
  return (
    <ConflictDialog
      conflict={form.conflict}
      names={names}
      {...(title !== undefined && { title })}
      busy={form.isBusy}
      problem={isStale ? undefined : form.problem}
      onSave={(choices) => void form.resolve(choices).then(onSaving)}
      onDiscard={form.takeTheirs}
      onClose={form.dismiss}
    />
  );
}
