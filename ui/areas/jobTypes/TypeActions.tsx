import { Button } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { PLATFORM } from '../../app/session/tenant.ts';
import { typeQuery, type JobTypeWithVersions } from './typeQueries.ts';
import { candidateOf, shortDigest, whyNotAccept, whyNotDisable } from './typeText.ts';
import { Difference } from './Versions.tsx';

type Props = { type: JobTypeWithVersions };
type Version = JobTypeWithVersions['versions'][number];

/** What can be done with a type. */
export function TypeActions({ type }: Props) {
  const { name, mayRun, origin } = type;
  return (
    <>
      {mayRun && (
        <Button
          leftSection={<Icon name="play" size={14} />}
          renderRoot={(props) => <PageLink {...props} to="/jobs/new" search={{ type: name }} />}
        >
          New job
        </Button>
      )}
      {origin === 'runner' && (
        <>
          <AcceptButton type={type} />
          <DisableButton type={type} />
          <DeleteButton type={type} />
        </>
      )}
    </>
  );
}

type Options = { params: { path: { name: string }; header: { 'If-Match': string } } };

/**
 * A change of a type, after a question. It is of the record as it was when the question was asked; after a
 * 412 the question goes on with what the page shows then.
 */
function useChange(
  { name, version }: JobTypeWithVersions,
  send: (options: Options) => Promise<unknown>,
  onDone?: () => Promise<void>,
) {
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [asked, setAsked] = useState(version);
  const { mutate, reset, isPending, error } = useMutation({
    mutationFn: async () => {
      await send({ params: { path: { name }, header: { 'If-Match': `"${asked ?? 0}"` } } });
    },
    onSuccess: async () => {
      setOpen(false);
      await onDone?.();
    },
    onSettled: async () => {
      await client.invalidateQueries({ queryKey: ['jobTypes'] });
      const now = client.getQueryData<JobTypeWithVersions>(typeQuery(name).queryKey);
      setAsked(now?.version ?? version);
    },
  });
  return {
    ask: () => {
      setAsked(version);
      setOpen(true);
    },
    dialog: {
      opened: isOpen,
      onClose: () => {
        setOpen(false);
        reset();
      },
      onConfirm: () => mutate(),
      busy: isPending,
      problem: error,
    },
  };
}

function AcceptButton({ type }: Props) {
  const { whyNot } = usePermissions();
  // The dialog is about one version, also when runners announce another one in the meantime.
  const [version, setVersion] = useState<Version>();
  const { ask, dialog } = useChange(type, (options) => {
    const body = version ? { digest: version.digest } : {};
    return answer(api.POST('/api/job-types/{name}/accept', { ...options, body }));
  });
  return (
    <>
      <ReasonButton
        icon="check"
        reason={whyNot('jobtype:write', PLATFORM) ?? whyNotAccept(type)}
        onClick={() => {
          setVersion(candidateOf(type));
          ask();
        }}
      >
        Accept
      </ReasonButton>
      <ConfirmDialog
        {...dialog}
        title={`Accept ${type.name}`}
        confirm={`Accept version ${version ? shortDigest(version.digest) : ''}`}
      >
        {version && (
          <>
            <p>
              The version <code>{shortDigest(version.digest)}</code>, which{' '}
              {formatNumberOf(version.runners, 'living runner has', 'living runners have')}, and
              versions with the same payload, targets, access and secrets get jobs. Others wait.
            </p>
            <Difference type={type} version={version} />
          </>
        )}
      </ConfirmDialog>
    </>
  );
}

function DisableButton({ type }: Props) {
  const { whyNot } = usePermissions();
  const { ask, dialog } = useChange(type, (options) =>
    answer(api.POST('/api/job-types/{name}/disable', options)),
  );
  return (
    <>
      <ReasonButton
        variant="default"
        icon="pause"
        reason={whyNot('jobtype:write', PLATFORM) ?? whyNotDisable(type)}
        onClick={ask}
      >
        Disable
      </ReasonButton>
      <ConfirmDialog {...dialog} title={`Disable ${type.name}`} confirm="Disable job type" danger>
        No job of it is created, and queued ones wait, until it is accepted again. Running attempts
        go on.
      </ConfirmDialog>
    </>
  );
}

function DeleteButton({ type }: Props) {
  const { whyNot } = usePermissions();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { ask, dialog } = useChange(
    type,
    (options) => answer(api.DELETE('/api/job-types/{name}', options)),
    async () => {
      await navigate({ to: '/job-types' });
      client.removeQueries({ queryKey: typeQuery(type.name).queryKey });
    },
  );
  return (
    <>
      <ReasonButton
        variant="default"
        icon="trash"
        reason={whyNot('jobtype:write', PLATFORM)}
        onClick={ask}
      >
        Delete
      </ReasonButton>
      <ConfirmDialog {...dialog} title={`Delete ${type.name}`} confirm="Delete job type" danger>
        {(type.runners ?? 0) > 0
          ? 'Runners that still have it announce it again, and it waits to be accepted, unless its pool accepts it by its name.'
          : 'A runner that still has it announces it again when it starts.'}
      </ConfirmDialog>
    </>
  );
}
