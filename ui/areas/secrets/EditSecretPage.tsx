import { Skeleton } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef } from 'react';
import { notifyOutcome } from '../../app/notify.ts';
import { answer, api } from '../../app/api.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { problemFields } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { ConflictDialog } from '../../parts/versioned/ConflictDialog.tsx';
import { useVersionedForm, type Saving } from '../../parts/versioned/useVersionedForm.ts';
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
        <Skeleton height={200} aria-label="The secret is being read" />
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
  const isSaved = useRef(false);
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
  const { status, errors } = problemFields(form.problem);
  const problem = form.conflict ? undefined : form.problem;
  const finish = (saving: Saving) => {
    if (saving === 'failed') return;
    void client.invalidateQueries({ queryKey: ['secrets'] });
    if (saving === 'typedOn') {
      notifyOutcome('Saved', 'What you have typed since is not saved yet.');
      return;
    }
    isSaved.current = true;
    void navigate({ to: '/secrets/$secretId', params: { secretId: id } });
  };
  return (
    <RecordPage parent={PARENT} id={id} title={`Edit ${name}`} form>
      <LeaveGuard hasChanges={() => form.isDirty && !isSaved.current} />
      <RecordForm
        problem={problem}
        shown={DRAFT_FIELDS}
        onSubmit={() => void form.submit().then(finish)}
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
      <ConflictDialog
        conflict={form.conflict}
        names={undefined}
        busy={form.isBusy}
        problem={status === 412 ? undefined : form.problem}
        onSave={(choices) => void form.resolve(choices).then(finish)}
        onDiscard={form.takeTheirs}
        onClose={form.dismiss}
      />
    </RecordPage>
  );
}
