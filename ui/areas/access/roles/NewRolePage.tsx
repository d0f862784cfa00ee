import { TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { useDraft } from '../useDraft.tsx';
import { ROLE_FIELDS, RoleFields, type RoleDraft } from './RoleFields.tsx';
import { roleQuery, ROLES_KEY, type Role } from './roleQueries.ts';

const route = getRouteApi('/frame/access/new-role');

const PARENT = { label: 'Roles', to: '/access/roles' };
const SHOWN = [...ROLE_FIELDS, '/id'];

type Draft = RoleDraft & { id: string };

/** Creates a role, perhaps with what another one allows. */
export function NewRolePage() {
  const { from } = route.useSearch();
  const { data, error, refetch } = useQuery({
    ...roleQuery(from ?? ''),
    enabled: from !== undefined,
  });
  if (from === undefined) return <Creator />;
  if (data) return <Creator key={data.id} from={data} />;
  return <UnreadRecord parent={PARENT} title="New role" id={from} error={error} retry={refetch} />;
}

const startOf = (from: Role | undefined): Draft => ({
  id: '',
  name: from ? `Copy of ${from.name}` : '',
  permissions: from?.permissions ?? [],
  jobTypes: from?.jobTypes ?? [],
});

function Creator({ from }: { from?: Role }) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const { draft, change, allowLeave, guard } = useDraft(() => startOf(from));
  const { create, isBusy, error } = useCreation({
    send: ({ id, name, ...rest }: Draft, header) =>
      answer(
        api.POST('/api/rbac/roles', {
          params: { header },
          body: { name: name.trim(), ...rest, ...(id.trim() !== '' && { id: id.trim() }) },
        }),
      ),
    onMade: ({ id }) => {
      allowLeave();
      void client.invalidateQueries({ queryKey: ROLES_KEY });
      void navigate({ to: '/access/roles/$roleId', params: { roleId: id } });
    },
  });
  const { errors } = problemFields(error);
  return (
    <RecordPage
      parent={PARENT}
      title="New role"
      note={from && `It starts with what ${from.name} allows.`}
      form
    >
      {guard}
      <RecordForm
        problem={error}
        shown={SHOWN}
        onSubmit={() => create(draft)}
        busy={isBusy}
        submit="Create role"
        permission="rbac:write"
        where={PLATFORM}
        reason={draft.permissions.length === 0 ? 'Choose at least one permission.' : undefined}
        back="/access/roles"
      >
        <RoleFields draft={draft} onChange={change} errors={errors} />
        <TextInput
          label="Id"
          description="For requests and files, such as net-jobs; it never changes. Empty: one is made"
          maxLength={63}
          autoComplete="off"
          spellCheck={false}
          value={draft.id}
          onChange={(event) => change({ id: event.currentTarget.value })}
          error={errorAt(errors, '/id')}
        />
      </RecordForm>
    </RecordPage>
  );
}
