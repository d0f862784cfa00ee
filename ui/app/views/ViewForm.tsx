import { Checkbox, TextInput } from '@mantine/core';
import { useState } from 'react';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import formClasses from '../../parts/form/Form.module.css';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { problemFields } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';

export type ViewDraft = { name: string; shared: boolean };

type Props = {
  initial: ViewDraft;
  submit: string;
  /** Why the reader cannot share views of this list; undefined if it can. */
  whyNotShare: string | undefined;
  onSubmit: (draft: ViewDraft) => void;
  onBack: () => void;
  busy: boolean;
  problem: unknown;
};

/** The name of a view, and who sees it. */
export function ViewForm(props: Props) {
  const { initial, submit, whyNotShare, onSubmit, onBack, busy, problem } = props;
  const [draft, setDraft] = useState(initial);
  const { errors } = problemFields(problem);
  const isNamed = draft.name.trim() !== '';
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (isNamed && !busy) onSubmit({ ...draft, name: draft.name.trim() });
      }}
    >
      {problem !== null && problem !== undefined && (
        <ProblemNote problem={problem} withoutFields={errors.length > 0} />
      )}
      <TextInput
        label="Name"
        data-autofocus
        maxLength={100}
        required
        autoComplete="off"
        value={draft.name}
        onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
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
        onChange={(event) => setDraft({ ...draft, shared: event.currentTarget.checked })}
      />
      <div className={formClasses.buttons} data-end>
        <ReasonButton variant="default" onClick={onBack}>
          Back
        </ReasonButton>
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
