import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { useEditPage } from '../../app/useEditPage.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { problemFields } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { useVersionedForm } from '../../parts/versioned/useVersionedForm.ts';
import { Reading } from '../../parts/Reading.tsx';
import { draftOf, requestOf, type WebhookDraft } from './draft.ts';
import { DRAFT_FIELDS, WebhookFields } from './WebhookFields.tsx';
import { webhookQuery, type Webhook } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';

const route = getRouteApi('/frame/webhooks/$webhookId/edit');

const PARENT = { label: 'Webhooks', to: '/webhooks' };

/** Changes where a webhook sends what. Its secret is rotated on its page. */
export function EditWebhookPage() {
  const { webhookId } = route.useParams();
  const { data, error, refetch } = useQuery(webhookQuery(webhookId));
  if (data) return <Editor key={webhookId} webhook={data} />;
  return (
    <RecordPage parent={PARENT} title="Edit webhook" id={webhookId}>
      {error ? (
        <ProblemNote problem={error} retry={() => void refetch()} />
      ) : (
        <Reading height={320} label="Loading the webhook" />
      )}
    </RecordPage>
  );
}

type Fields = Parameters<typeof draftOf>[0] & { version: number };

const versionOf = (webhook: Fields) => ({
  values: draftOf(webhook),
  etag: `"${webhook.version}"`,
});

function Editor({ webhook }: { webhook: Omit<Webhook, 'lastDelivery' | 'warnings'> }) {
  const { id, tenantId } = webhook;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const form = useVersionedForm<WebhookDraft>({
    record: versionOf(webhook),
    save: async (draft, etag) =>
      versionOf(
        await answer(
          api.PUT('/api/webhooks/{id}', {
            params: { path: { id }, header: { 'If-Match': etag } },
            body: requestOf(draft),
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...webhookQuery(id), staleTime: 0 })),
  });
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['webhooks'],
    leave: () => navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } }),
  });
  const { errors } = problemFields(form.problem);
  return (
    <RecordPage parent={PARENT} id={id} title={`Edit ${nameOf(webhook)}`} form>
      {guards}
      <RecordForm
        problem={problem}
        shown={DRAFT_FIELDS}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="webhook:write"
        where={{ tenantId }}
        reason={
          !form.isDirty
            ? 'Nothing has been changed.'
            : form.values.eventTypes.length === 0
              ? 'Choose at least one event type.'
              : undefined
        }
        back={`/webhooks/${id}`}
      >
        <WebhookFields
          draft={form.values}
          onChange={(change) => form.setValues({ ...form.values, ...change })}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
