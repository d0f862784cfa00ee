import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { problemFields } from '../../parts/problems.ts';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { EMPTY_POOL, POOL_FIELDS, PoolFields, requestOf, type PoolDraft } from './PoolFields.tsx';
import { PLATFORM } from '../../app/session/tenant.ts';
import { poolPath } from './poolText.ts';

const PARENT = { label: 'Runners', to: '/runners' };
const SHOWN = [...POOL_FIELDS, '/name'];

type Draft = PoolDraft & { name: string };
const EMPTY: Draft = { ...EMPTY_POOL, name: '' };

/** Creates a pool; its page then has what a runner needs. */
export function NewPoolPage() {
  const navigate = useNavigate();
  const client = useQueryClient();
  const isSaved = useRef(false);
  const [draft, setDraft] = useState(EMPTY);
  const { create, isBusy, error } = useCreation({
    send: ({ name, ...fields }: Draft, header) =>
      answer(
        api.POST('/api/pools', {
          params: { header },
          body: { name: name.trim(), ...requestOf(fields) },
        }),
      ),
    onMade: ({ name }) => {
      isSaved.current = true;
      void client.invalidateQueries({ queryKey: ['runners'] });
      void navigate({ to: poolPath(name) as '/' });
    },
  });
  const { errors } = problemFields(error);
  const change = (fields: Partial<Draft>) => setDraft((old) => ({ ...old, ...fields }));
  return (
    <RecordPage
      parent={PARENT}
      title="New pool"
      note="Pools belong to the installation: their runners take jobs of all tenants."
      form
    >
      <LeaveGuard
        hasChanges={() => !isSaved.current && JSON.stringify(draft) !== JSON.stringify(EMPTY)}
      />
      <RecordForm
        problem={error}
        shown={SHOWN}
        onSubmit={() => create(draft)}
        busy={isBusy}
        submit="Create pool"
        permission="jobtype:write"
        where={PLATFORM}
        back="/runners"
      >
        <TextInput
          label="Name"
          description="Declarations and tokens name it; it never changes"
          required
          maxLength={63}
          autoComplete="off"
          spellCheck={false}
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          error={errorAt(errors, '/name')}
        />
        <PoolFields draft={draft} onChange={change} errors={errors} />
      </RecordForm>
    </RecordPage>
  );
}
