import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { useEditPage } from '../../../app/useEditPage.tsx';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { useVersionedForm } from '../../../parts/versioned/useVersionedForm.ts';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { ROLE_FIELDS, RoleFields, type RoleDraft } from './RoleFields.tsx';
import { roleQuery, type Role } from './roleQueries.ts';
import { usePermissionNames } from './usePermissionNames.ts';

const route = getRouteApi('/frame/access/roles/$roleId/edit');

const PARENT = { label: 'Roles', to: '/access/roles' };

/** Changes an own role, for everyone who has it. */
export function EditRolePage() {
  const { roleId } = route.useParams();
  const { data, error, refetch } = useQuery(roleQuery(roleId));
  if (data) return <Editor key={roleId} role={data} />;
  return (
    <UnreadRecord parent={PARENT} title="Edit role" id={roleId} error={error} retry={refetch} />
  );
}

function Editor({ role }: { role: Role }) {
  const { id, name, builtIn } = role;
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const all = usePermissionNames();
  const versionOf = ({ version, permissions, jobTypes, ...rest }: Role) => ({
    values: {
      name: rest.name,
      permissions: all.filter((permission) => permissions.includes(permission)),
      jobTypes,
    },
    etag: `"${version}"`,
  });
  const form = useVersionedForm<RoleDraft>({
    record: versionOf(role),
    save: async (draft, etag) =>
      versionOf(
        await answer(
          api.PUT('/api/rbac/roles/{id}', {
            params: { path: { id }, header: { 'If-Match': etag } },
            body: { ...draft, name: draft.name.trim() },
          }),
        ),
      ),
    readAgain: async () => versionOf(await client.query({ ...roleQuery(id), staleTime: 0 })),
  });
  const { guards, save, problem } = useEditPage({
    form,
    queryKey: ['access'],
    leave: () => navigate({ to: '/access/roles/$roleId', params: { roleId: id } }),
  });
  return (
    <RecordPage
      parent={PARENT}
      id={id}
      title={`Edit ${name}`}
      note="A change takes effect immediately for everyone who has the role."
      form
    >
      {guards}
      <RecordForm
        problem={problem}
        shown={ROLE_FIELDS}
        onSubmit={save}
        busy={form.isBusy}
        submit="Save changes"
        permission="rbac:write"
        where={PLATFORM}
        reason={reasonOf(builtIn, form)}
        back={`/access/roles/${id}`}
      >
        <RoleFields
          draft={form.values}
          onChange={(change) => form.setValues({ ...form.values, ...change })}
          errors={problemFields(form.problem).errors}
        />
      </RecordForm>
    </RecordPage>
  );
}

function reasonOf(
  builtIn: boolean,
  { isDirty, values }: { isDirty: boolean; values: RoleDraft },
): string | undefined {
  if (builtIn) return 'Built-in roles cannot be changed.';
  if (values.permissions.length === 0) return 'Choose at least one permission.';
  return isDirty ? undefined : 'Nothing has been changed.';
}
