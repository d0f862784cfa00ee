import { Alert } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { TenantNotice, useFormTenant, type FormTenant } from '../../app/useFormTenant.tsx';
import { errorsUnder, objectOf, otherErrors } from '../../parts/form/fieldErrors.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import type { RetryPolicy } from '../../parts/form/retryPolicy.ts';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions, type Where } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { INCOMPLETE, SchemaForm } from '../../parts/schemaForm/SchemaForm.tsx';
import { AskApproval } from './AskApproval.tsx';
import type { JobType } from './jobQueries.ts';
import classes from './Jobs.module.css';
import { PolicyPart } from './PolicyPart.tsx';

/** What is typed for a job of one type. */
export type JobDraft = { payload: Record<string, unknown>; retryPolicy: Partial<RetryPolicy> };

type Props = {
  type: JobType;
  draft: JobDraft;
  onDraft: (draft: JobDraft) => void;
  hasChanges: boolean;
};

const MASK = '********';
const FIELDS = ['/payload', '/retryPolicy'];

/** Creates a job and opens its page. */
function useCreateJob(type: JobType, { headers }: FormTenant, onCreated: () => void) {
  const navigate = useNavigate();
  const client = useQueryClient();
  return useCreation({
    send: (draft: Partial<JobDraft> & Pick<JobDraft, 'payload'>, header) => {
      const body = { type: type.name, ...draft };
      return answer(api.POST('/api/jobs', { params: { header }, headers, body }));
    },
    onMade: ({ id }) => {
      onCreated();
      void client.invalidateQueries({ queryKey: ['jobs', 'list'] });
      void navigate({ to: '/jobs/$jobId', params: { jobId: id } });
    },
  });
}

/** The payload and the retry policy of a new job, and what becomes of it: a job or a request for one. */
export function JobForm({ type, draft, onDraft, hasChanges }: Props) {
  const isSent = useRef(false);
  const [isAsking, setAsking] = useState(false);
  const [hasPolicy, setPolicy] = useState(Object.keys(draft.retryPolicy).length > 0);
  const [isIncomplete, setIncomplete] = useState(false);
  const { payload, retryPolicy } = draft;
  const tenant = useFormTenant();
  const { create, isBusy, error } = useCreateJob(type, tenant, () => (isSent.current = true));
  const errors = error instanceof Problem ? error.errors : [];
  return (
    <form
      className={classes.fields}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isIncomplete) create({ payload, ...(hasPolicy && { retryPolicy }) });
      }}
    >
      <LeaveGuard hasChanges={() => hasChanges && !isSent.current} />
      <Heading type={type} tenant={tenant.tenant} />
      <TenantNotice form={tenant} />
      {error && (
        <ProblemNote problem={error} withoutFields={otherErrors(errors, FIELDS).length === 0} />
      )}
      <MaskedSecrets payload={payload} />
      <SchemaForm
        label="Payload"
        schema={type.payloadSchema}
        value={payload}
        onChange={(next) => onDraft({ ...draft, payload: objectOf(next) })}
        errors={errorsUnder(errors, '/payload')}
        onIncomplete={setIncomplete}
        disabled={isBusy}
      />
      <PolicyPart
        isOpen={hasPolicy}
        onOpen={setPolicy}
        value={retryPolicy}
        onChange={(next) => onDraft({ ...draft, retryPolicy: next })}
        defaults={type.retryPolicy}
        errors={errorsUnder(errors, '/retryPolicy')}
      />
      <Buttons
        type={type}
        where={{ tenantId: tenant.tenant }}
        reason={isIncomplete ? INCOMPLETE : undefined}
        isBusy={isBusy}
        onAsk={() => setAsking(true)}
      />
      <AskApproval
        opened={isAsking}
        onClose={() => setAsking(false)}
        type={type}
        payload={payload}
        tenant={tenant}
        onAsked={() => (isSent.current = true)}
      />
    </form>
  );
}

/** Says that a copied payload has no secrets. */
function MaskedSecrets({ payload }: Pick<JobDraft, 'payload'>) {
  if (!JSON.stringify(payload).includes(MASK)) return null;
  return (
    <Alert color="yellow" title="Secrets are masked">
      Enter them again: {MASK} would be used as it is.
    </Alert>
  );
}

type HeadingProps = { type: JobType; tenant: string };

function Heading({ type: { name, summary }, tenant }: HeadingProps) {
  return (
    <div>
      <h2 className={classes.typeName}>{name}</h2>
      <span className={classes.muted}>
        {summary}. The job belongs to the tenant {tenant}.
      </span>
    </div>
  );
}

type ButtonsProps = {
  type: JobType;
  where: Where;
  /** Why nothing can be sent now. */
  reason: string | undefined;
  isBusy: boolean;
  onAsk: () => void;
};

function Buttons({ type: { permission }, where, reason, isBusy, onAsk }: ButtonsProps) {
  const { whyNot } = usePermissions();
  return (
    <div className={classes.buttons}>
      <PermissionButton
        type="submit"
        permission="job:write"
        where={where}
        reason={(permission === null ? undefined : whyNot(permission, where)) ?? reason}
        loading={isBusy}
        icon="play"
      >
        Start job
      </PermissionButton>
      <PermissionButton
        permission="workflow:write"
        where={where}
        reason={reason}
        variant="default"
        icon="approval"
        onClick={onAsk}
      >
        Ask for approval instead
      </PermissionButton>
    </div>
  );
}
