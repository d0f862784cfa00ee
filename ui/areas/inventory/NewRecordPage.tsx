import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useRef, useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { TenantNotice, useFormTenant, type FormTenant } from '../../app/useFormTenant.tsx';
import { useCreation } from '../../app/useCreation.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { AskButton } from './AskButton.tsx';
import { listPath, resourceKey, type Resource } from './inventoryQueries.ts';
import { PlanPanel } from './PlanPanel.tsx';
import { whyNotApply } from './planState.ts';
import { RecordFormFields } from './RecordFormFields.tsx';
import { isComplete, type RecordValues } from './recordSchema.ts';
import { useResourceOf } from './resources.ts';
import { startValues } from './startValues.ts';
import { parentOf, WithResource } from './WithResource.tsx';
import { usePlan, type Mutation } from './usePlan.ts';
import { useSentErrors } from './useSentErrors.ts';
import { whereOfNew } from './whereOf.ts';

const route = getRouteApi('/frame/inventory/$resource/new');

/** Creates a record of any resource. What it changes is shown while one types. */
export function NewRecordPage() {
  const { resource } = route.useParams();
  return (
    <WithResource name={resource}>
      {(found, all) => <InTenant key={found.name} resource={found} all={all} />}
    </WithResource>
  );
}

type InTenantProps = { resource: Resource; all: readonly Resource[] };

/** The form has the custom fields of its tenant, also after a switch of the session. */
function InTenant({ resource, all }: InTenantProps) {
  const tenant = useFormTenant();
  const own = useResourceOf(resource, whereOfNew(resource, {}, tenant.tenant).tenantId);
  return own ? <NewRecord resource={own} all={all} tenant={tenant} /> : null;
}

/** Creates the record and opens its page. */
function useCreateRecord(resource: Resource, { headers }: FormTenant, onMade: () => void) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  return useCreation({
    send: async (record: RecordValues, header) => {
      // Each resource has its own body; the service checks it.
      const body = record as { cidr: string };
      const call = api.POST(listPath(resource.name), { params: { header }, headers, body });
      return await answer(call);
    },
    onMade: ({ id }) => {
      onMade();
      void client.invalidateQueries({ queryKey: resourceKey(resource.name) });
      void navigate({
        to: '/inventory/$resource/$recordId',
        params: { resource: resource.name, recordId: id },
      });
    },
  });
}

type Props = InTenantProps & { tenant: FormTenant };

/** What is typed, and what it would change. */
function useNewRecord(resource: Resource, tenant: FormTenant, refused: Error | null) {
  const search = route.useSearch();
  const given = useMemo(() => startValues(resource, search), [resource, search]);
  const [values, setValues] = useState<RecordValues>(given);
  const [isUnfinished, setUnfinished] = useState(false);
  const mutation: Mutation = { resource: resource.name, operation: 'create', record: values };
  const canPlan = isComplete(resource, values) && !isUnfinished;
  const plan = usePlan(canPlan ? mutation : undefined, { headers: tenant.headers, refused });
  const sent = useSentErrors(refused, values);
  return {
    mutation,
    plan,
    reason: canPlan ? whyNotApply(plan, false) : 'Fill in the fields that it needs.',
    hasChanges: JSON.stringify(values) !== JSON.stringify(given),
    fields: {
      values,
      onChange: setValues,
      errors: sent.length > 0 ? sent : plan.errors,
      onIncomplete: setUnfinished,
    },
  };
}

function NewRecord({ resource, all, tenant }: Props) {
  const { name, singular } = resource;
  const isSent = useRef(false);
  const { create, isBusy, error } = useCreateRecord(
    resource,
    tenant,
    () => (isSent.current = true),
  );
  const form = useNewRecord(resource, tenant, error);
  const { mutation, plan, reason, fields } = form;
  const where = whereOfNew(resource, fields.values, tenant.tenant);
  return (
    <RecordPage
      parent={parentOf(resource)}
      title={`New ${singular}`}
      note={`It belongs to the tenant ${tenant.tenant}.`}
      form
      aside={
        <PlanPanel
          plan={plan}
          all={all}
          nothing="Fill in the fields that it needs: what it changes is shown here."
        />
      }
    >
      <LeaveGuard hasChanges={() => form.hasChanges && !isSent.current} />
      <TenantNotice form={tenant} />
      <RecordForm
        problem={error}
        shown={['']}
        onSubmit={() => {
          if (reason === undefined) create(fields.values);
        }}
        busy={isBusy}
        submit={`Create ${singular}`}
        permission="inventory:write"
        where={where}
        reason={reason}
        more={
          <AskButton
            mutation={mutation}
            title={`Create a ${singular}`}
            where={where}
            headers={tenant.headers}
            reason={reason}
            onAsked={() => (isSent.current = true)}
          />
        }
        back={`/inventory/${name}`}
      >
        <RecordFormFields resource={resource} isNew disabled={isBusy} {...fields} />
      </RecordForm>
    </RecordPage>
  );
}
