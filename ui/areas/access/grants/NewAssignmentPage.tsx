import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { errorAt } from '../../../parts/form/fieldErrors.ts';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { AccountPicker } from '../AccountPicker.tsx';
import { useDraft } from '../useDraft.tsx';
import { RoleField } from './RoleField.tsx';
import { ScopeField } from './ScopeField.tsx';
import { missingOfScope, scopeIds, scopeOfText, type ScopeDraft } from './scopes.ts';
import { useWhere } from './useWhere.ts';

const route = getRouteApi('/frame/access/assignments/new');

const PARENT = { label: 'Assignments', to: '/access/assignments' };
const SHOWN = ['/userId', '/roleId', '/tenantId', '/siteId', '/deviceId'];

type Draft = { userId: string | undefined; roleId: string | undefined; scope: ScopeDraft };

function missingIn({ userId, roleId, scope }: Draft): string | undefined {
  if (userId === undefined) return 'Choose who gets the role.';
  if (roleId === undefined) return 'Choose a role.';
  return missingOfScope(scope);
}

type Search = { userId?: string | undefined };

/** Creates the assignment, and leads back to the account from whose page it was started. */
function useAssign({ userId: from }: Search, allowLeave: () => void) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  return useCreation({
    send: ({ userId = '', roleId = '', scope }: Draft, header) =>
      answer(
        api.POST('/api/rbac/assignments', {
          params: { header },
          body: { userId, roleId, ...scopeIds(scope) },
        }),
      ),
    onMade: ({ userId }) => {
      allowLeave();
      void client.invalidateQueries({ queryKey: ['access'] });
      if (from === userId) void navigate({ to: '/access/users/$userId', params: { userId } });
      else void navigate({ to: '/access/assignments' });
    },
  });
}

/** Lets an account have a role somewhere. */
export function NewAssignmentPage() {
  const search = route.useSearch();
  const { draft, change, allowLeave, guard } = useDraft((): Draft => ({
    userId: search.userId,
    roleId: search.roleId,
    scope: scopeOfText(search),
  }));
  const { create, isBusy, error } = useAssign(search, allowLeave);
  const { errors } = problemFields(error);
  const where = useWhere(draft.scope);
  return (
    <RecordPage
      parent={PARENT}
      title="New assignment"
      note="You can assign what you have yourself at the same scope."
      form
    >
      {guard}
      <RecordForm
        problem={error}
        shown={SHOWN}
        onSubmit={() => create(draft)}
        busy={isBusy}
        submit="Assign role"
        permission="rbac:write"
        where={where}
        reason={missingIn(draft)}
        back={
          search.userId === undefined ? '/access/assignments' : `/access/users/${search.userId}`
        }
      >
        <AccountPicker
          label="Who"
          description="A user or a service account"
          required
          value={draft.userId}
          onChange={(userId) => change({ userId })}
          error={errorAt(errors, '/userId')}
        />
        <RoleField
          value={draft.roleId}
          onChange={(roleId) => change({ roleId })}
          error={errorAt(errors, '/roleId')}
        />
        <ScopeField
          label="Where"
          value={draft.scope}
          onChange={(scope) => change({ scope })}
          errors={errors}
        />
      </RecordForm>
    </RecordPage>
  );
}
