import { Alert } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { AskApproval } from '../../app/AskApproval.tsx';
import { useCreation } from '../../app/useCreation.ts';
import { useSession } from '../../app/session/useSession.ts';
import { TenantNotice, useFormTenant, type FormTenant } from '../../app/useFormTenant.tsx';
import { errorsUnder, objectOf } from '../../parts/form/fieldErrors.ts';
import { LeaveGuard } from '../../parts/form/LeaveGuard.tsx';
import { MASK } from '../../parts/mask.ts';
import type { FieldError } from '../../parts/problems.ts';
import type { RetryPolicy } from '../../parts/form/retryPolicy.ts';
import { PermissionButton, ReasonButton } from '../../parts/PermissionButton.tsx';
import { usePermissions, type Where } from '../../parts/permissions.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { TargetField } from '../../parts/records/TargetField.tsx';
import { targetKindOf, targetRequest } from '../../parts/records/target.ts';
import { INCOMPLETE, SchemaForm } from '../../parts/schemaForm/SchemaForm.tsx';
import type { JobType } from './jobQueries.ts';
import { inTenant, whyNotCreate } from '../../parts/records/jobTarget.ts';
import { whereQuery } from '../../parts/records/whereQuery.ts';
import classes from './Jobs.module.css';
import { PolicyPart } from './PolicyPart.tsx';

/** What is typed for a job of one type. */
export type JobDraft = {
  payload: Record<string, unknown>;
  retryPolicy: Partial<RetryPolicy>;
  /** The id of the record that the job is about. */
  targetId?: string | undefined;
};

type Props = {
  type: JobType;
  draft: JobDraft;
  onDraft: (draft: JobDraft) => void;
  hasChanges: boolean;
};

const FIELDS = ['/payload', '/retryPolicy', '/target'];

/** Creates a job and opens its page. */
function useCreateJob(type: JobType, { headers }: FormTenant, onCreated: () => void) {
  const navigate = useNavigate();
  const client = useQueryClient();
  return useCreation({
    send: ({ payload, retryPolicy, targetId }: JobDraft, header) => {
      const target = targetRequest(targetKindOf(type), targetId);
      const body = { type: type.name, payload, retryPolicy, ...(target && { target }) };
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
  const { payload, retryPolicy, targetId } = draft;
  const kind = targetKindOf(type);
  const tenant = useFormTenant();
  const { create, isBusy, error } = useCreateJob(type, tenant, () => (isSent.current = true));
  const errors = error instanceof Problem ? error.errors : [];
  const reasons = useReasons(type, tenant.tenant, targetId);
  return (
    <form
      className={classes.fields}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isIncomplete && !(kind && targetId === undefined))
          create({ payload, targetId, retryPolicy: hasPolicy ? retryPolicy : {} });
      }}
    >
      <LeaveGuard hasChanges={() => hasChanges && !isSent.current} />
      <Heading type={type} tenant={tenant.tenant} />
      <TenantNotice form={tenant} />
      <RefusedNote problem={error} shown={FIELDS} />
      <MaskedSecrets payload={payload} />
      <WorkFields {...{ type, draft, onDraft, errors, isBusy }} onIncomplete={setIncomplete} />
      <PolicyPart
        isOpen={hasPolicy}
        onOpen={setPolicy}
        value={retryPolicy}
        onChange={(next) => onDraft({ ...draft, retryPolicy: next })}
        defaults={type.retryPolicy}
        errors={errorsUnder(errors, '/retryPolicy')}
      />
      <Buttons
        {...reasons}
        reason={isIncomplete ? INCOMPLETE : undefined}
        isBusy={isBusy}
        onAsk={() => setAsking(true)}
      />
      <AskApproval
        opened={isAsking}
        onClose={() => setAsking(false)}
        type="job"
        title={`Run ${type.name}`}
        note="After the approval the job runs exactly as you have filled it in, with your permissions and the retry policy of its type."
        content={requestedJob(type, payload, targetId)}
        where={reasons.where}
        headers={tenant.headers}
        onAsked={() => (isSent.current = true)}
      />
    </form>
  );
}

/** The job that is asked for. */
function requestedJob(
  type: JobType,
  payload: Record<string, unknown>,
  targetId: string | undefined,
) {
  const jobTarget = targetRequest(targetKindOf(type), targetId);
  return { jobType: type.name, jobPayload: payload, ...(jobTarget && { jobTarget }) };
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

type WorkProps = Pick<Props, 'type' | 'draft' | 'onDraft'> & {
  errors: readonly FieldError[];
  isBusy: boolean;
  onIncomplete: (isIncomplete: boolean) => void;
};

/** What the job is about, and its payload. */
function WorkFields({ type, draft, onDraft, errors, isBusy, onIncomplete }: WorkProps) {
  const kind = targetKindOf(type);
  return (
    <>
      {kind && (
        <TargetField
          kind={kind}
          value={draft.targetId}
          onChange={(targetId) => onDraft({ ...draft, targetId })}
          errors={errors}
          disabled={isBusy}
        />
      )}
      <SchemaForm
        label="Payload"
        schema={type.payloadSchema}
        value={draft.payload}
        onChange={(payload) => onDraft({ ...draft, payload: objectOf(payload) })}
        errors={errorsUnder(errors, '/payload')}
        onIncomplete={onIncomplete}
        disabled={isBusy}
      />
    </>
  );
}

type HeadingProps = { type: JobType; tenant: string };

function Heading({ type: { name, summary, targets }, tenant }: HeadingProps) {
  return (
    <div>
      <h2 className={classes.typeName}>{name}</h2>
      <span className={classes.muted}>
        {summary}. {targets === 'none' && `The job belongs to the tenant ${tenant}.`}
      </span>
    </div>
  );
}

type ButtonsProps = Reasons & {
  /** Why nothing can be sent now. */
  reason: string | undefined;
  isBusy: boolean;
  onAsk: () => void;
};

/** Why nothing can be sent for this target, why no job can be started there, and where that is. */
type Reasons = {
  missing?: string | undefined;
  refused?: string | undefined;
  where: Where;
};

function useReasons(type: JobType, tenantId: string, targetId: string | undefined): Reasons {
  const { whyNot } = usePermissions();
  const { tenant: present } = useSession();
  const kind = targetKindOf(type);
  const target = useQuery({
    ...whereQuery(kind ?? 'site', targetId ?? ''),
    enabled: kind !== undefined && targetId !== undefined,
  }).data;
  // Until it is known where the target is, the service decides.
  const where: Where = kind === undefined ? { tenantId } : (target ?? { complete: false });
  const whyNotThere = (permission: string) => whyNot(permission, where);
  if (kind !== undefined && targetId === undefined) return { missing: `Choose a ${kind}.`, where };
  if (where.complete === false) return { where };
  return { refused: whyNotCreate(inTenant(type, tenantId === present), whyNotThere), where };
}

function Buttons({ missing, refused, where, reason, isBusy, onAsk }: ButtonsProps) {
  const { canAnywhere } = usePermissions();
  return (
    <div className={classes.buttons}>
      {canAnywhere('job:write') && (
        <ReasonButton
          type="submit"
          reason={refused ?? missing ?? reason}
          loading={isBusy}
          icon="play"
        >
          Start job
        </ReasonButton>
      )}
      <PermissionButton
        permission="workflow:write"
        where={where}
        reason={missing ?? reason}
        variant="default"
        icon="approval"
        onClick={onAsk}
      >
        Ask for approval instead
      </PermissionButton>
    </div>
  );
}
