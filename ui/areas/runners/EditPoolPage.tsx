import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { problemFields } from '../../parts/problems.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { useEditPage } from '../../app/useEditPage.tsx';
import { useVersionedForm } from '../../parts/versioned/useVersionedForm.ts';
import { Reading } from '../../parts/Reading.tsx';
import { PLATFORM } from '../../app/session/tenant.ts';
import { draftOf, POOL_FIELDS, PoolFields, requestOf, type PoolDraft } from './PoolFields.tsx';
import { poolPath } from './poolText.ts';
import { poolQuery, type Pool } from './runnerQueries.ts';

const route = getRouteApi('/frame/runners/pools/$pool/edit');

const PARENT = { label: 'Runners', to: '/runners' };

/** Changes a pool. What is typed stays when others change it. */
export function EditPoolPage() {
  const { pool: name } = route.useParams();
  const { data, error, refetch } = useQuery(poolQuery(name));
  if (data) return <Editor key={name} pool={data} />;
  return (
    <RecordPage parent={PARENT} title={`Edit ${name}`}>
      {error ? (
        <ProblemNote problem={error} retry={() => void refetch()} />
      ) : (
        <Reading height={200} label="Loading the pool" />
      )}
    </RecordPage>
  );
}

const versionOf = (pool: Pool) => ({ values: draftOf(pool), etag: `"${pool.version}"` });

function Editor({ pool }: { pool: Pool }) {
  const { name } = pool;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const form = useVersionedForm<PoolDraft>({
    record: versionOf(pool),
    save: async (draft, etag) =>
      versionOf(
        await answer(
          api.PUT('/api/pools/{name}', {
            params: { path: { name }, header: { 'If-Match': etag } },
            body: requestOf(draft),
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...poolQuery(name), staleTime: 0 })),
  });
  const { errors } = problemFields(form.problem);
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['runners'],
    leave: () => navigate({ to: '/runners/pools/$pool', params: { pool: name } }),
  });
  return (
    <RecordPage parent={PARENT} title={`Edit ${name}`} form>
      {guards}
      <RecordForm
        problem={problem}
        shown={POOL_FIELDS}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="jobtype:write"
        where={PLATFORM}
        reason={form.isDirty ? undefined : 'Nothing has been changed.'}
        back={poolPath(name)}
      >
        <PoolFields
          draft={form.values}
          onChange={(change) => form.setValues({ ...form.values, ...change })}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
