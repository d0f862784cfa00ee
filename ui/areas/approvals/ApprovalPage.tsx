import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Actor } from '../../parts/Actor.tsx';
import { Bones } from '../../parts/Bones.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { Json } from '../../parts/Json.tsx';
import { labelOf, type Names } from '../../parts/names.ts';
import { IconButton, ReasonButton } from '../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { ApiText } from './ApiText.tsx';
import { BoundJob } from './BoundJob.tsx';
import { ChangedSince } from './ChangedSince.tsx';
import { Composer } from './Composer.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { EffectList } from '../../parts/plan/EffectList.tsx';
import { Facts } from './Facts.tsx';
import { allShown, countNotShown, namesOf, type Shown } from '../../parts/plan/effects.ts';
import { requestQuery, type ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import { isOpen, stateOf } from '../../parts/approvals/states.ts';
import { Timeline } from './Timeline.tsx';
import { CancelDialog } from './CancelDialog.tsx';
import classes from './ApprovalPage.module.css';

const route = getRouteApi('/frame/approvals/$id');

const PARENT = { label: 'Approvals', to: '/approvals' };

/** One request: what would change, whether it still holds, and deciding on it. */
export function ApprovalPage() {
  const { id } = route.useParams();
  const { queryKey, queryFn } = requestQuery(id);
  const { data: request, error, refetch, isPending } = useQuery({ queryKey, queryFn });
  useTitle(request?.title ?? 'Approval request');
  useLiveRefresh(['workflow.*'], queryKey, ({ subject }) => subject.id === id);
  useLiveRefresh(['job.*'], queryKey, ({ data }) => isJobOf(id, data));
  const changing = new Set(request?.effects.map((effect) => effect.id));
  useLiveRefresh(['inventory.*'], queryKey, ({ subject }) => changing.has(subject.id));
  if (!request)
    return (
      <RecordPage parent={PARENT} id={id} title="Approval request">
        {isPending && <Bones rows={8} />}
        {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      </RecordPage>
    );
  return (
    <div className={classes.page}>
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <Request key={id} request={request} />
    </div>
  );
}

/** True for the data of an event about the job that a request has started. */
const isJobOf = (id: string, data: unknown): boolean =>
  (data as { source?: { id?: unknown } }).source?.id === id;

function Request({ request }: { request: ApprovalRequest }) {
  const names = namesOf(request);
  const { id, title, warnings, effects } = request;
  const [shown, setShown] = useState<Shown>({});
  return (
    <>
      <div className={classes.record}>
        <RecordPage
          parent={PARENT}
          id={id}
          title={
            <span dir="auto">
              <Exact text={title} />
            </span>
          }
          badge={
            <span role="status">
              <StatusBadge {...stateOf(request)} />
            </span>
          }
          note={<Byline request={request} names={names} />}
          actions={<Actions request={request} />}
          aside={
            <>
              <Facts request={request} names={names} />
              <BoundJob request={request} />
            </>
          }
        >
          <ChangedSince request={request} names={names} />
          <Outcome request={request} names={names} />
          {warnings.length > 0 && <Warnings warnings={warnings} />}
          <Changes request={request} names={names} shown={shown} onShown={setShown} />
          <Timeline request={request} names={names} />
        </RecordPage>
      </div>
      <Composer
        request={request}
        names={names}
        notShown={countNotShown(effects, shown)}
        onShowAll={() => setShown(allShown(effects))}
      />
    </>
  );
}

type PartProps = { request: ApprovalRequest; names: Names };

function Warnings({ warnings }: Pick<ApprovalRequest, 'warnings'>) {
  return (
    <Section title="Warnings">
      <ul className={classes.warnings}>
        {warnings.map(({ pointer, code, message }) => (
          <li key={`${pointer ?? ''} ${code} ${message}`}>
            <Exact text={message} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Who asked for it, where and until when. */
function Byline({ request, names }: PartProps) {
  const { createdBy, createdAt, status, expiresAt } = request;
  return (
    <span className={classes.byline}>
      <strong>
        <Actor id={createdBy} names={names} full />
      </strong>{' '}
      asked <Time value={createdAt} format="relative" /> <Where request={request} names={names} />
      {status === 'pending' && (
        <>
          {' · '}expires <Time value={expiresAt} format="relative" />
        </>
      )}
    </span>
  );
}

/** What can be done with the request beside deciding. */
function Actions({ request }: { request: ApprovalRequest }) {
  const { id, status, you } = request;
  const [isCancelling, setCancelling] = useState(false);
  return (
    <>
      <IconButton icon="printer" label="Print" onClick={() => window.print()} />
      {you.mayCancel && (
        <>
          <ReasonButton variant="default" onClick={() => setCancelling(true)}>
            {status === 'pending' ? 'Cancel the request' : 'Cancel the execution'}
          </ReasonButton>
          <CancelDialog
            id={id}
            request={request}
            opened={isCancelling}
            onClose={() => setCancelling(false)}
          />
        </>
      )}
    </>
  );
}

/** The scope of the request: its tenant, and the site or device in it. */
function Where({ request: { tenantId, siteId, deviceId }, names }: PartProps) {
  return (
    <>
      in{' '}
      <RecordLink
        id={tenantId}
        names={names}
        kind="tenants"
        label={labelOf(names, tenantId, 'tenants') ?? tenantId}
      />
      {siteId !== null && (
        <>
          {', '}site <RecordLink id={siteId} names={names} kind="sites" />
        </>
      )}
      {deviceId !== null && (
        <>
          {', '}device <RecordLink id={deviceId} names={names} kind="devices" />
        </>
      )}
    </>
  );
}

/** What happens next, in sentences. */
function Outcome({ request, names }: PartProps) {
  const { status, execution, ifApproved, error, closedBy, closeComment } = request;
  return (
    <Section title={isOpen({ status, execution }) ? 'What happens' : 'What happened'}>
      <p className={classes.outcome}>
        <ApiText text={ifApproved} names={names} />
      </p>
      {status === 'rejected' && (
        <p className={classes.outcome} dir="auto">
          <Actor id={closedBy} names={names} full /> rejected it
          {closeComment === null ? '.' : <Exact text={`: ${closeComment}`} />}
        </p>
      )}
      {execution === 'failed' && error !== null && (
        <p className={classes.outcome}>
          <code>{error.code}</code> <Exact text={error.message} />
        </p>
      )}
    </Section>
  );
}

type ChangesProps = PartProps & { shown: Shown; onShown: (shown: Shown) => void };

/** The records that change; what else the request carries. Nothing of it is folded or cut. */
function Changes({ request, names, shown, onShown }: ChangesProps) {
  const { effects, hiddenEffects, jobType, jobPayload, payload, validationRequest } = request;
  const count = effects.length + (hiddenEffects ?? 0);
  const hasPlan = count > 0 || (hiddenEffects === null && jobType === 'inventory.apply');
  return (
    <>
      {hasPlan && (
        <Section
          title="What changes"
          note={hiddenEffects === null ? undefined : formatNumberOf(count, 'record')}
        >
          <EffectList
            effects={effects}
            hidden={hiddenEffects}
            names={names}
            shown={shown}
            onShown={onShown}
          />
        </Section>
      )}
      {jobPayload !== null && Object.keys(jobPayload).length > 0 && (
        <Section title="Payload of the job">
          <Json value={jobPayload} label="Payload of the job" whole />
        </Section>
      )}
      {Object.keys(payload).length > 0 && (
        <Section title="Details from the requester">
          <Json value={payload} label="Details from the requester" whole />
        </Section>
      )}
      {validationRequest !== null && (
        <details className={classes.details}>
          <summary>The change as it was requested</summary>
          <Json value={validationRequest} label="The change as it was requested" whole />
        </details>
      )}
    </>
  );
}
