import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useEditPage } from '../../../app/useEditPage.tsx';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { useVersionedForm } from '../../../parts/versioned/useVersionedForm.ts';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { SERVICE_FIELDS, ServiceFields, type ServiceDraft } from './ServiceFields.tsx';
import { serviceQuery, type ServiceAccount } from './serviceQueries.ts';

const route = getRouteApi('/frame/access/service-accounts/$accountId/edit');

const PARENT = { label: 'Service accounts', to: '/access/service-accounts' };

/** Changes name, owner and tenant of a service account. */
export function EditServicePage() {
  const { accountId } = route.useParams();
  const { data, error, refetch } = useQuery(serviceQuery(accountId));
  if (data) return <Editor key={accountId} account={data} />;
  return (
    <UnreadRecord
      parent={PARENT}
      title="Edit service account"
      id={accountId}
      error={error}
      retry={refetch}
    />
  );
}

const versionOf = ({ name, displayName, ownerId, tenantId, version }: ServiceAccount) => ({
  values: { name, displayName, ownerId: ownerId ?? undefined, tenantId },
  etag: `"${version}"`,
});

/** A field that stays must not be sent: a change of the tenant needs more rights. */
const requestOf = (draft: ServiceDraft, started: ServiceDraft) => ({
  ...(draft.name !== started.name && { name: draft.name.trim() }),
  ...(draft.displayName !== started.displayName && { displayName: draft.displayName.trim() }),
  ...(draft.ownerId !== started.ownerId &&
    draft.ownerId !== undefined && { ownerId: draft.ownerId }),
  ...(draft.tenantId !== started.tenantId && { tenantId: draft.tenantId.trim() }),
});

function Editor({ account }: { account: ServiceAccount }) {
  const { id, name, tenantId } = account;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const form = useVersionedForm<ServiceDraft>({
    record: versionOf(account),
    save: async (draft, etag, started) =>
      versionOf(
        await answer(
          api.PUT('/api/service-accounts/{id}', {
            params: { path: { id }, header: { 'If-Match': etag } },
            body: requestOf(draft, started),
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...serviceQuery(id), staleTime: 0 })),
  });
  const { errors } = problemFields(form.problem);
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['access'],
    leave: () => navigate({ to: '/access/service-accounts/$accountId', params: { accountId: id } }),
  });
  return (
    <RecordPage parent={PARENT} id={id} title={`Edit ${name}`} form>
      {guards}
      <RecordForm
        problem={problem}
        shown={SERVICE_FIELDS}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="user:write"
        where={{ tenantId }}
        reason={form.isDirty ? undefined : 'Nothing has been changed.'}
        back={`/access/service-accounts/${id}`}
      >
        <ServiceFields
          draft={form.values}
          onChange={(change) => form.setValues({ ...form.values, ...change })}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
