import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useEditPage } from '../../../app/useEditPage.tsx';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { useVersionedForm } from '../../../parts/versioned/useVersionedForm.ts';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { USER_FIELDS, UserFields, type UserDraft } from './UserFields.tsx';
import { userQuery, type User } from './userQueries.ts';

const route = getRouteApi('/frame/access/users/$userId/edit');

const PARENT = { label: 'Users', to: '/access/users' };

/** Changes name, e-mail address and tenant of a user. */
export function EditUserPage() {
  const { userId } = route.useParams();
  const { data, error, refetch } = useQuery(userQuery(userId));
  if (data) return <Editor key={userId} user={data} />;
  return (
    <UnreadRecord parent={PARENT} title="Edit user" id={userId} error={error} retry={refetch} />
  );
}

const versionOf = ({ displayName, email, tenantId, version }: User) => ({
  values: { displayName, email: email ?? '', tenantId },
  etag: `"${version}"`,
});

const requestOf = (draft: UserDraft, started: UserDraft) => ({
  // A field that stays must not be sent: a change of the tenant needs more rights.
  ...(draft.displayName !== started.displayName && { displayName: draft.displayName.trim() }),
  ...(draft.email !== started.email && { email: draft.email.trim() || null }),
  ...(draft.tenantId !== started.tenantId && { tenantId: draft.tenantId.trim() }),
});

function Editor({ user }: { user: User }) {
  const { id, username, tenantId } = user;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const form = useVersionedForm<UserDraft>({
    record: versionOf(user),
    save: async (draft, etag, started) =>
      versionOf(
        await answer(
          api.PUT('/api/users/{id}', {
            params: { path: { id }, header: { 'If-Match': etag } },
            body: requestOf(draft, started),
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...userQuery(id), staleTime: 0 })),
  });
  const { errors } = problemFields(form.problem);
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['access'],
    leave: () => navigate({ to: '/access/users/$userId', params: { userId: id } }),
  });
  return (
    <RecordPage parent={PARENT} id={id} title={`Edit ${username}`} form>
      {guards}
      <RecordForm
        problem={problem}
        shown={USER_FIELDS}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="user:write"
        where={{ tenantId }}
        reason={form.isDirty ? undefined : 'Nothing has been changed.'}
        back={`/access/users/${id}`}
      >
        <UserFields
          draft={form.values}
          onChange={(change) => form.setValues({ ...form.values, ...change })}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
