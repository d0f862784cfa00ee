import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { useIdempotencyKeys } from '../../app/idempotency.ts';
import { TenantNotice, useFormTenant } from '../../app/useFormTenant.tsx';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { DRAFT_FIELDS, SecretFields, type SecretDraft } from './SecretFields.tsx';
import { useSend } from '../../app/useSend.ts';
import { ValueField } from '../../parts/form/ValueField.tsx';

const PARENT = { label: 'Secrets', to: '/secrets' };
const SHOWN = [...DRAFT_FIELDS, '/name', '/value'];

type Draft = SecretDraft & { name: string; value: string };
const EMPTY: Draft = { name: '', value: '', description: '', pools: [] };

/** Creates a secret, and leads to it. A repeat after an outage has the same idempotency key. */
function useCreate(headers: Record<string, string>, onSaved: () => void) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const keys = useIdempotencyKeys();
  return async (draft: Draft): Promise<void> => {
    const body = { ...draft, name: draft.name.trim() };
    const { id } = await keys.once(body, (header) =>
      answer(api.POST('/api/secrets', { params: { header }, headers, body })),
    );
    onSaved();
    void client.invalidateQueries({ queryKey: ['secrets'] });
    await navigate({ to: '/secrets/$secretId', params: { secretId: id } });
  };
}

/** Creates a secret. Its value is sent once, and never shown again. */
export function NewSecretPage() {
  const form = useFormTenant();
  const isSaved = useRef(false);
  const [draft, setDraft] = useState(EMPTY);
  const { send, busy, problem } = useSend();
  const errors = problem instanceof Problem ? problem.errors : [];
  const change = (fields: Partial<Draft>) => setDraft((old) => ({ ...old, ...fields }));

  const create = useCreate(form.headers, () => {
    isSaved.current = true;
  });
  return (
    <RecordPage
      parent={PARENT}
      title="New secret"
      note={
        form.tenant === 'platform'
          ? 'It belongs to the platform: jobs of all tenants can get it.'
          : `It belongs to the tenant ${form.tenant}.`
      }
      form
    >
      <LeaveGuard
        hasChanges={() => !isSaved.current && JSON.stringify(draft) !== JSON.stringify(EMPTY)}
      />
      <TenantNotice form={form} />
      <RecordForm
        problem={problem}
        shown={SHOWN}
        onSubmit={() => void send(() => create(draft))}
        busy={busy}
        submit="Create secret"
        permission="secret:write"
        where={{ tenantId: form.tenant }}
        back="/secrets"
      >
        <TextInput
          label="Name"
          description="Job types ask for it by this name, which never changes"
          required
          maxLength={63}
          autoComplete="off"
          spellCheck={false}
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
          error={errorAt(errors, '/name')}
        />
        <ValueField
          label="Value"
          value={draft.value}
          onChange={(value) => change({ value })}
          error={errorAt(errors, '/value')}
        />
        <SecretFields draft={draft} onChange={change} errors={errors} />
      </RecordForm>
    </RecordPage>
  );
}
