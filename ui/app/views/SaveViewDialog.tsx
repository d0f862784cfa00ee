import { Dialog } from '../../parts/Dialog.tsx';
import type { ListSearch } from '../../parts/list/search.ts';
import { answer, api } from '../api.ts';
import { useCreation } from '../useCreation.ts';
import { useViewActions, type View } from './useViews.ts';
import { ViewForm, type ViewDraft } from './ViewForm.tsx';
import { contentOf } from './viewSearch.ts';

type SaveProps = {
  list: string;
  search: ListSearch;
  whyNotShare: string | undefined;
  onSaved: (view: View) => void;
  onClose: () => void;
};

/** Saves what the list shows as a new view. */
export function SaveViewDialog({ list, search, whyNotShare, onSaved, onClose }: SaveProps) {
  const { refresh } = useViewActions();
  const { create, isBusy, error } = useCreation({
    send: (draft: ViewDraft, header) => {
      const body = { list, search: contentOf(search), ...draft };
      return answer(api.POST('/api/views', { params: { header }, body }));
    },
    onMade: (view) => {
      void refresh();
      onSaved(view);
    },
  });
  return (
    <Dialog opened onClose={onClose} title="Save as a view" size="md">
      <ViewForm
        initial={{ name: '', shared: false }}
        submit="Save view"
        whyNotShare={whyNotShare}
        onSubmit={create}
        onBack={onClose}
        busy={isBusy}
        problem={error}
      />
    </Dialog>
  );
}
