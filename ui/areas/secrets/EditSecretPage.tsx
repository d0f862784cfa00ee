import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { problemFields } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { useEditPage } from '../../app/useEditPage.tsx';
import { useVersionedForm } from '../../parts/versioned/useVersionedForm.ts';
import { Reading } from '../../parts/Reading.tsx';
import { DRAFT_FIELDS, SecretFields, type SecretDraft } from './SecretFields.tsx';
import { secretQuery, type Secret } from './secretQueries.ts';

const route = getRouteApi('/frame/secrets/$secretId/edit');

const PARENT = { label: 'Secrets', to: '/secrets' };

/** Changes the description and the pools of a secret. */
export function EditSecretPage() {
  const { secretId } = route.useParams();
  const { data, error, refetch } = useQuery(secretQuery(secretId));
  if (data) return <Editor key={secretId} secret={data} />;
  return (
    <RecordPage parent={PARENT} title="Edit secret" id={secretId}>
      {error ? (
        <ProblemNote problem={error} retry={() => void refetch()} />
      ) : (
        <Reading height={200} label="Loading the secret" />
      )}
    </RecordPage>
  );
}

const versionOf = ({ description, pools, version }: Secret) => ({
  values: { description, pools },
  etag: `"${version}"`,
});

function Editor({ secret }: { secret: Secret }) {
  const { id, name, tenantId } = secret;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const form = useVersionedForm<SecretDraft>({
    record: versionOf(secret),
    save: async (body, etag) =>
      versionOf(
        await answer(
          api.PUT('/api/secrets/{id}', {
            params: { path: { id }, header: { 'If-Match': etag } },
            body,
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...secretQuery(id), staleTime: 0 })),
  });
  const { errors } = problemFields(form.problem);
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['secrets'],
    leave: () => navigate({ to: '/secrets/$secretId', params: { secretId: id } }),
  });
  return (
    <RecordPage parent={PARENT} id={id} title={`Edit ${name}`} form>
      {guards}
      <RecordForm
        problem={problem}
        shown={DRAFT_FIELDS}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="secret:write"
        where={{ tenantId }}
        reason={form.isDirty ? undefined : 'Nothing has been changed.'}
        back={`/secrets/${id}`}
      >
        <SecretFields
          draft={form.values}
          onChange={(change) => form.setValues({ ...form.values, ...change })}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
