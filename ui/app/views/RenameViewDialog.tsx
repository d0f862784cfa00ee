import { useState } from 'react';
import { Dialog } from '../../parts/Dialog.tsx';
import { problemFields } from '../../parts/problems.ts';
import { FormConflict } from '../../parts/versioned/FormConflict.tsx';
import { useVersionedForm, type Saving } from '../../parts/versioned/useVersionedForm.ts';
import { notifyProblem } from '../notify.ts';
import { etagOf, readView, useViewActions, type View } from './useViews.ts';
import { ViewFields, type ViewDraft } from './ViewForm.tsx';

type Props = { view: View; whyNotShare: string | undefined; onClose: () => void };

const versionOf = (view: View) => ({
  values: { name: view.name, shared: view.shared },
  etag: etagOf(view),
});

/** Changes the name of a view, and who sees it. */
export function RenameViewDialog({ view, whyNotShare, onClose }: Props) {
  const { update } = useViewActions();
  const { id } = view;
  // The dialog is called what the view was called when it was opened.
  const [title] = useState(`Change ${view.name}`);
  const form = useVersionedForm<ViewDraft>({
    record: versionOf(view),
    save: async ({ name, shared }, etag, started) => {
      const change = {
        ...(name.trim() !== started.name && { name: name.trim() }),
        ...(shared !== started.shared && { shared }),
      };
      try {
        return versionOf(await update.mutateAsync({ id, etag, change }));
      } catch (error) {
        // The view was deleted: the dialog goes with it.
        if (problemFields(error).status === 404) notifyProblem(error);
        throw error;
      }
    },
    readAgain: async () => versionOf(await readView(id)),
  });
  // Only its owner can make a shared view private.
  const whyNot = view.shared && !view.isOwn ? 'Only its owner can make it private.' : whyNotShare;
  const finish = (saving: Saving) => {
    if (saving === 'saved') onClose();
  };
  return (
    <>
      <Dialog opened={form.conflict === undefined} onClose={onClose} title={title} size="md">
        <ViewFields
          draft={form.values}
          onChange={form.setValues}
          submit="Save"
          whyNotShare={view.shared && view.isOwn ? undefined : whyNot}
          onSubmit={() => void form.submit().then(finish)}
          onBack={onClose}
          busy={form.isBusy}
          problem={form.problem}
        />
      </Dialog>
      <FormConflict
        form={form}
        title={`${view.name} has changed in the meantime`}
        onSaving={finish}
      />
    </>
  );
}
