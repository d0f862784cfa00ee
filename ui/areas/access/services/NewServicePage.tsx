import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../../../app/api.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { RecordForm } from '../../../parts/form/RecordForm.tsx';
import { problemFields } from '../../../parts/problems.ts';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { useDraft } from '../useDraft.tsx';
import { SERVICE_FIELDS, ServiceFields, type ServiceDraft } from './ServiceFields.tsx';
import { SERVICES_KEY } from './serviceQueries.ts';

const PARENT = { label: 'Service accounts', to: '/access/service-accounts' };

/** Creates the account, and leads to it. */
function useCreate(allowLeave: () => void) {
  const navigate = useNavigate();
  const client = useQueryClient();
  return useCreation({
    send: ({ name, displayName, ownerId, tenantId }: ServiceDraft, header) =>
      answer(
        api.POST('/api/service-accounts', {
          params: { header },
          body: {
            name: name.trim(),
            ...(displayName.trim() !== '' && { displayName: displayName.trim() }),
            ...(ownerId !== undefined && { ownerId }),
            tenantId: tenantId.trim(),
          },
        }),
      ),
    onMade: ({ id }) => {
      allowLeave();
      void client.invalidateQueries({ queryKey: SERVICES_KEY });
      void navigate({ to: '/access/service-accounts/$accountId', params: { accountId: id } });
    },
  });
}

/** Creates a service account; its page then has what it needs: roles and tokens. */
export function NewServicePage() {
  const { account, tenant } = useSession();
  const { draft, change, allowLeave, guard } = useDraft((): ServiceDraft => ({
    name: '',
    displayName: '',
    ownerId: account?.id,
    tenantId: tenant,
  }));
  const { create, isBusy, error } = useCreate(allowLeave);
  const { errors } = problemFields(error);
  return (
    <RecordPage
      parent={PARENT}
      title="New service account"
      note="For a program. It never decides approvals."
      form
    >
      {guard}
      <RecordForm
        problem={error}
        shown={SERVICE_FIELDS}
        onSubmit={() => create(draft)}
        busy={isBusy}
        submit="Create service account"
        permission="user:write"
        where={{ tenantId: draft.tenantId.trim() }}
        reason={draft.ownerId === undefined ? 'Choose an owner.' : undefined}
        back="/access/service-accounts"
      >
        <ServiceFields draft={draft} onChange={change} errors={errors} />
      </RecordForm>
    </RecordPage>
  );
}
