import { Button, Checkbox, TextInput } from '@mantine/core';
import { useState } from 'react';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import formClasses from '../../parts/form/Form.module.css';
import { useBusyDialog } from '../../parts/Dialog.tsx';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { problemFields } from '../../parts/problems.ts';
import { RefusedNote } from '../../parts/RefusedNote.tsx';

export type ViewDraft = { name: string; shared: boolean };

type Props = {
  /** Why the reader cannot share views of this list; undefined if it can. */
  whyNotShare: string | undefined;
  submit: string;
  onBack: () => void;
  busy: boolean;
  problem: unknown;
};

type FieldsProps = Props & {
  draft: ViewDraft;
  onChange: (draft: ViewDraft) => void;
  onSubmit: () => void;
};

/** The name of a view, and who sees it. */
export function ViewFields(props: FieldsProps) {
  const { draft, onChange, submit, whyNotShare, onSubmit, onBack, busy, problem } = props;
  useBusyDialog(busy);
  const { errors } = problemFields(problem);
  const isNamed = draft.name.trim() !== '';
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (isNamed && !busy) onSubmit();
      }}
    >
      <RefusedNote problem={problem} shown={['/name']} />
      <TextInput
        label="Name"
        data-autofocus
        maxLength={100}
        required
        autoComplete="off"
        value={draft.name}
        onChange={(event) => onChange({ ...draft, name: event.currentTarget.value })}
        error={errorAt(errors, '/name')}
      />
      <Checkbox
        label="Shared"
        description={
          whyNotShare ??
          'All in the tenant who may see the list find it. Each sees only the records that they may read.'
        }
        disabled={whyNotShare !== undefined}
        checked={draft.shared}
        onChange={(event) => onChange({ ...draft, shared: event.currentTarget.checked })}
      />
      <div className={formClasses.buttons} data-end>
        <Button variant="default" onClick={onBack} disabled={busy}>
          Back
        </Button>
        <ReasonButton
          type="submit"
          loading={busy}
          reason={isNamed ? undefined : 'It needs a name.'}
        >
          {submit}
        </ReasonButton>
      </div>
    </form>
  );
}

type FormProps = Props & { initial: ViewDraft; onSubmit: (draft: ViewDraft) => void };

/** The name of a new view, and who sees it. */
export function ViewForm({ initial, onSubmit, ...props }: FormProps) {
  const [draft, setDraft] = useState(initial);
  return (
    <ViewFields
      {...props}
      draft={draft}
      onChange={setDraft}
      onSubmit={() => onSubmit({ ...draft, name: draft.name.trim() })}
    />
  );
}
