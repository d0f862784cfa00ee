import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useEditPage } from '../../app/useEditPage.tsx';
import { RecordForm } from '../../parts/form/RecordForm.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { useVersionedForm } from '../../parts/versioned/useVersionedForm.ts';
import { Reading } from '../../parts/Reading.tsx';
import { AskButton } from './AskButton.tsx';
import {
  inventoryRecordQuery,
  onePath,
  type InventoryRecord,
  type Resource,
} from './inventoryQueries.ts';
import { PlanPanel } from './PlanPanel.tsx';
import { whyNotApply } from './planState.ts';
import { changesOf } from './recordChanges.ts';
import { RecordFormFields } from './RecordFormFields.tsx';
import { valuesOf, type RecordValues } from './recordSchema.ts';
import { labelIn, useResourceOf } from './resources.ts';
import { whereOf } from './whereOf.ts';
import { commonWhere } from '../../parts/where.ts';
import { usePlan, type Mutation } from './usePlan.ts';
import { useSentErrors } from './useSentErrors.ts';
import { parentOf, WithResource } from './WithResource.tsx';

const route = getRouteApi('/frame/inventory/$resource/$recordId/edit');

/** Changes a record of any resource. What it changes is shown while one types. */
export function EditRecordPage() {
  const { resource, recordId } = route.useParams();
  return (
    <WithResource name={resource}>
      {(found, all) => <Loading key={recordId} resource={found} all={all} id={recordId} />}
    </WithResource>
  );
}

type LoadingProps = { resource: Resource; all: readonly Resource[]; id: string };

function Loading({ resource, all, id }: LoadingProps) {
  const { data, error, refetch } = useQuery(inventoryRecordQuery(resource.name, id));
  const own = useResourceOf(resource, data && whereOf(resource.name, data).tenantId);
  if (data && own) return <Editor resource={own} all={all} record={data} />;
  return (
    <RecordPage parent={parentOf(resource)} title={`Edit ${resource.singular}`} id={id}>
      {error ? (
        <ProblemNote problem={error} retry={() => void refetch()} />
      ) : (
        <Reading height={320} label={`Loading the ${resource.singular}`} />
      )}
    </RecordPage>
  );
}

/** The form: it sends the fields that differ from the version that it started from. */
function useRecordForm(resource: Resource, record: InventoryRecord) {
  const client = useQueryClient();
  const { name } = resource;
  const { id } = record;
  const versionOf = (each: InventoryRecord) => ({
    values: valuesOf(resource, each),
    etag: `"${each.version}"`,
  });
  const base = versionOf(record);
  return useVersionedForm<RecordValues>({
    record: base,
    save: async (values, etag, started) => {
      const body = changesOf(resource, started, values);
      const params = { path: { id }, header: { 'If-Match': etag } };
      const saved = await answer(api.PUT(onePath(name), { params, body }));
      return versionOf(saved);
    },
    readAgain: async () =>
      versionOf(await client.query({ ...inventoryRecordQuery(name, id), staleTime: 0 })),
  });
}

type EditorProps = { resource: Resource; all: readonly Resource[]; record: InventoryRecord };

/** What is typed, and what it would change. */
function useEditor(resource: Resource, record: InventoryRecord) {
  const [isIncomplete, setIncomplete] = useState(false);
  const form = useRecordForm(resource, record);
  const changes = changesOf(resource, form.started, form.values);
  const isChanged = Object.keys(changes).length > 0;
  const mutation: Mutation = {
    resource: resource.name,
    operation: 'update',
    record: { id: record.id, ...changes },
  };
  const plan = usePlan(isChanged && !isIncomplete ? mutation : undefined, {
    refused: form.problem,
  });
  const reason = isChanged ? whyNotApply(plan, isIncomplete) : 'Nothing has been changed.';
  return { form, mutation, plan, reason, setIncomplete };
}

function Editor({ resource, all, record }: EditorProps) {
  const [{ name }, { id }] = [resource, record];
  const navigate = route.useNavigate();
  const { form, mutation, plan, reason, setIncomplete } = useEditor(resource, record);
  const { guards, save, problem, allowLeave } = useEditPage({
    form,
    names: record.included,
    queryKey: ['inventory'],
    leave: () =>
      navigate({ to: '/inventory/$resource/$recordId', params: { resource: name, recordId: id } }),
  });
  const sent = useSentErrors(problem, form.values);
  const where = whereOf(name, record);
  const label = labelIn(resource, record);
  return (
    <RecordPage
      parent={parentOf(resource)}
      id={id}
      title={`Edit ${label}`}
      form
      aside={
        <PlanPanel plan={plan} all={all} names={record.included} nothing="Nothing changes yet." />
      }
    >
      {guards}
      <RecordForm
        problem={problem}
        shown={['']}
        onSubmit={() => {
          if (reason === undefined) save();
        }}
        busy={form.isBusy}
        submit="Save changes"
        permission="inventory:write"
        where={where}
        reason={reason}
        more={
          <AskButton
            mutation={mutation}
            title={`Change the ${resource.singular} ${label}`}
            // A change that moves the record concerns more than where it is now.
            where={commonWhere([where, whereOf(name, { ...record, ...mutation.record })])}
            reason={reason}
            onAsked={allowLeave}
          />
        }
        back={`/inventory/${name}/${encodeURIComponent(id)}`}
      >
        <RecordFormFields
          resource={resource}
          isNew={false}
          values={form.values}
          onChange={form.setValues}
          errors={sent.length > 0 ? sent : plan.errors}
          disabled={form.isBusy}
          onIncomplete={setIncomplete}
        />
      </RecordForm>
    </RecordPage>
  );
}
