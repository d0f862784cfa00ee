import { Button } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { useJobTypes } from '../../app/jobTypes.ts';
import { useSession } from '../../app/session/useSession.ts';
import { consoleSettings } from '../../app/settings.ts';
import { useCreation } from '../../app/useCreation.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { PermissionButton, ReasonButton } from '../../parts/PermissionButton.tsx';
import { usePermissions, type Where } from '../../parts/permissions.tsx';
import { inTenant, whyNotCreate } from '../../parts/records/jobTarget.ts';
import { jobQuery, type Job, type JobType } from './jobQueries.ts';
import { isFinal, temporalLink, whyNotCancel, whyNotRetry } from './jobText.ts';

/** What can be done with a job. */
export function JobActions({ job }: { job: Job }) {
  const types = useJobTypes().data?.items ?? [];
  return (
    <>
      <TemporalButton job={job} />
      <CopyAsNew job={job} isCreatable={types.some(isOfType(job.type))} />
      {isFinal(job.status) ? <RetryButton job={job} types={types} /> : <CancelButton job={job} />}
    </>
  );
}

/** Who may act at the target of a job may act on the job. */
const whereOfJob = ({ tenantId, siteId, deviceId }: Job): Where => ({ tenantId, siteId, deviceId });

const isOfType =
  (name: string) =>
  (type: { name: string; createdOnlyBy: string | null }): boolean =>
    type.name === name && type.createdOnlyBy === null;

function TemporalButton({ job }: { job: Job }) {
  const { data } = useQuery(consoleSettings);
  if (!data) return null;
  const link = temporalLink(job, data.temporalUi);
  if ('reason' in link)
    return (
      <ReasonButton variant="default" icon="externalLink" reason={link.reason}>
        Open in Temporal
      </ReasonButton>
    );
  return (
    <Button
      component="a"
      href={link.href}
      target="_blank"
      rel="noreferrer"
      variant="default"
      leftSection={<Icon name="externalLink" size={14} />}
    >
      Open in Temporal
    </Button>
  );
}

/** Opens the form for a new job with the payload of this one. */
function CopyAsNew({ job, isCreatable }: { job: Job; isCreatable: boolean }) {
  const { canAnywhere } = usePermissions();
  if (!isCreatable || !canAnywhere('job:write') || job.dataPurgedAt !== null) return null;
  return (
    <Button
      variant="default"
      leftSection={<Icon name="copy" size={14} />}
      renderRoot={(props) => <PageLink {...props} to="/jobs/new" search={{ from: job.id }} />}
    >
      Copy as new
    </Button>
  );
}

type RetryProps = { job: Job; types: readonly JobType[] };

function RetryButton({ job, types }: RetryProps) {
  const { whyNot } = usePermissions();
  const { tenant } = useSession();
  const type = types.find(({ name }) => name === job.type);
  const whyNotThere = (permission: string) => whyNot(permission, whereOfJob(job));
  const reason =
    whyNotRetry(job, types) ??
    (type && whyNotCreate(inTenant(type, job.tenantId === tenant), whyNotThere));
  const [isOpen, setOpen] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const retry = useCreation({
    send: (jobId: string, header) =>
      answer(api.POST('/api/jobs/{jobId}/retry', { params: { path: { jobId }, header } })),
    onMade: (created) => {
      void client.invalidateQueries({ queryKey: ['jobs'] });
      void navigate({ to: '/jobs/$jobId', params: { jobId: created.id } });
    },
  });
  return (
    <>
      <PermissionButton
        permission="job:write"
        where={whereOfJob(job)}
        reason={reason}
        icon="retry"
        onClick={() => setOpen(true)}
      >
        Retry
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          retry.reset();
        }}
        title={`Run ${job.type} again`}
        confirm="Retry job"
        onConfirm={() => retry.create(job.id)}
        busy={retry.isBusy}
        problem={retry.error}
      >
        A new job with the same payload and retry policy starts now, with your permissions.
        {job.error?.code === 'outcome_unknown' && (
          <strong> This job may have taken effect: check that before you repeat it.</strong>
        )}
      </ConfirmDialog>
    </>
  );
}

function CancelButton({ job }: { job: Job }) {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const { queryKey } = jobQuery(job.id);
  const cancel = useMutation({
    mutationFn: () =>
      answer(api.POST('/api/jobs/{jobId}/cancel', { params: { path: { jobId: job.id } } })),
    onSuccess: () => setOpen(false),
    // Also after an error: the job may have ended while the dialog was open.
    onSettled: () => client.invalidateQueries({ queryKey }),
  });
  const hasEnded =
    isFinal(job.status) || (cancel.error instanceof Problem && cancel.error.status === 409);
  return (
    <>
      <PermissionButton
        permission="job:cancel"
        where={whereOfJob(job)}
        reason={whyNotCancel(job)}
        icon="ban"
        variant="default"
        onClick={() => setOpen(true)}
      >
        Cancel job
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen && !hasEnded}
        onClose={() => {
          setOpen(false);
          cancel.reset();
        }}
        title={`Cancel ${job.type}`}
        confirm="Cancel job"
        danger
        onConfirm={() => cancel.mutate()}
        busy={cancel.isPending}
        problem={cancel.error}
      >
        {job.status === 'queued'
          ? 'The job has not started and will not start.'
          : 'The present attempt is stopped. What it has done already stays.'}
      </ConfirmDialog>
    </>
  );
}
