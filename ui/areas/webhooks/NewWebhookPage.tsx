import { Switch } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api, type Schemas } from '../../app/api.ts';
import { TenantNotice, useFormTenant } from '../../app/useFormTenant.tsx';
import { Dialog } from '../../parts/Dialog.tsx';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { problemFields } from '../../parts/problems.ts';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { ShownOnceGuard } from '../../parts/ShownOnce.tsx';
import { newDraft, requestOf } from './draft.ts';
import { SecretField } from './SecretField.tsx';
import { ShownSecret, type NewSecret } from './ShownSecret.tsx';
import { useSentSecret } from './useSentSecret.ts';
import { DRAFT_FIELDS, WebhookFields } from './WebhookFields.tsx';

const route = getRouteApi('/frame/webhooks/new');

const PARENT = { label: 'Webhooks', to: '/webhooks' };
const SHOWN = [...DRAFT_FIELDS, '/secret'];

const firstDraft = (type: string | undefined) => ({
  ...newDraft,
  ...(type !== undefined && { eventTypes: [type] }),
  secret: '',
  enabled: true,
});
type Draft = ReturnType<typeof firstDraft>;

/** What is typed, and the request that creates the webhook. */
function useNewWebhook(headers: Record<string, string>, type: string | undefined) {
  const client = useQueryClient();
  const [empty] = useState(() => firstDraft(type));
  const [draft, setDraft] = useState(empty);
  const isSaved = useRef(false);
  const { send, ...sent } = useSentSecret((body: Schemas['WebhookRequest'], header) =>
    answer(api.POST('/api/webhooks', { params: { header }, headers, body })),
  );
  return {
    ...sent,
    draft,
    change: (fields: Partial<Draft>) => setDraft((old) => ({ ...old, ...fields })),
    hasChanges: () => !isSaved.current && JSON.stringify(draft) !== JSON.stringify(empty),
    create: async () => {
      const { secret, enabled } = draft;
      const body = { ...requestOf(draft), enabled, ...(secret !== '' && { secret }) };
      if (!(await send(body))) return;
      isSaved.current = true;
      setDraft((old) => ({ ...old, secret: '' }));
      void client.invalidateQueries({ queryKey: ['webhooks', 'list'] });
    },
  };
}

/** Creates a webhook, and shows its secret once. */
export function NewWebhookPage() {
  const form = useFormTenant();
  const navigate = route.useNavigate();
  const { type } = route.useSearch();
  const { draft, change, create, made, ...sent } = useNewWebhook(form.headers, type);
  const { errors } = problemFields(sent.problem);
  const open = (id: string) =>
    void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } });
  return (
    <RecordPage parent={PARENT} title="New webhook" note={noteOf(form.tenant)} form>
      <LeaveGuard hasChanges={sent.hasChanges} />
      <ShownOnceGuard isNeeded={() => sent.busy} />
      <TenantNotice form={form} />
      <RecordForm
        problem={sent.problem}
        shown={SHOWN}
        onSubmit={() => void create()}
        busy={sent.busy}
        submit="Create webhook"
        permission="webhook:write"
        where={{ tenantId: form.tenant }}
        reason={draft.eventTypes.length === 0 ? 'Choose at least one event type.' : undefined}
        back="/webhooks"
      >
        <WebhookFields draft={draft} onChange={change} errors={errors} />
        <SecretField
          value={draft.secret}
          onChange={(secret) => change({ secret })}
          error={errorAt(errors, '/secret')}
        />
        <Switch
          label="Enabled: it receives events from now on"
          checked={draft.enabled}
          onChange={(event) => change({ enabled: event.currentTarget.checked })}
        />
      </RecordForm>
      {made && <CreatedDialog made={made} onDone={() => open(made.id)} />}
    </RecordPage>
  );
}

const noteOf = (tenant: string): string =>
  tenant === 'platform'
    ? 'It belongs to the platform: it receives the events of all tenants.'
    : `It belongs to the tenant ${tenant}, and receives the events of that tenant.`;

function CreatedDialog({ made, onDone }: { made: NewSecret; onDone: () => void }) {
  return (
    <Dialog
      opened
      onClose={onDone}
      title="The webhook is created"
      size="xl"
      withCloseButton={false}
      closeOnEscape={false}
    >
      <ShownSecret made={made} onDone={onDone} />
    </Dialog>
  );
}
