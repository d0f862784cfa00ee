import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Dialog, useBusyDialog } from '../../parts/Dialog.tsx';
import { errorAt } from '../../parts/form/fieldErrors.ts';
import formClasses from '../../parts/form/Form.module.css';
import { PermissionButton, ReasonButton } from '../../parts/PermissionButton.tsx';
import { problemFields } from '../../parts/problems.ts';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { useDeletion } from '../../parts/versioned/useDeletion.ts';
import { useStarted } from '../../parts/versioned/useStarted.ts';
import { secretQuery, type Secret } from './secretQueries.ts';
import { useSend } from '../../app/useSend.ts';
import { ValueField } from '../../parts/form/ValueField.tsx';

type Props = { secret: Secret };

/** What can be done with a secret. */
export function SecretActions({ secret }: Props) {
  const { id, tenantId } = secret;
  const [isReplacing, setReplacing] = useState(false);
  const navigate = useNavigate();
  const where = { tenantId };
  return (
    <>
      <PermissionButton
        permission="secret:write"
        where={where}
        icon="refresh"
        onClick={() => setReplacing(true)}
      >
        Replace value
      </PermissionButton>
      <Dialog
        opened={isReplacing}
        onClose={() => setReplacing(false)}
        title={`Replace the value of ${secret.name}`}
        size="lg"
      >
        <ReplaceForm secret={secret} onClose={() => setReplacing(false)} />
      </Dialog>
      <PermissionButton
        permission="secret:write"
        where={where}
        icon="edit"
        variant="default"
        onClick={() => void navigate({ to: '/secrets/$secretId/edit', params: { secretId: id } })}
      >
        Edit
      </PermissionButton>
      <DeleteButton secret={secret} />
    </>
  );
}

/** The value is in this form only, and is forgotten with it. */
function ReplaceForm({ secret, onClose }: Props & { onClose: () => void }) {
  const { started, watch } = useStarted(secret);
  const { id, version } = started;
  const client = useQueryClient();
  const [value, setValue] = useState('');
  const { send, busy, problem } = useSend();
  useBusyDialog(busy);
  const { errors } = problemFields(problem);
  const replace = async () => {
    try {
      const params = { path: { id }, header: { 'If-Match': `"${version}"` } };
      await watch(answer(api.PUT('/api/secrets/{id}', { params, body: { value } })));
    } finally {
      await client.invalidateQueries({ queryKey: ['secrets'] });
    }
  };
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        void send(replace).then((isDone) => isDone && onClose());
      }}
    >
      <p className={formClasses.text}>
        Set the new value in the other system first. Attempts that start from now on get it; those
        that run keep the old one, so end that in the other system when they have ended.
      </p>
      <RefusedNote problem={problem} shown={['/value']} />
      <ValueField
        label="New value"
        value={value}
        onChange={setValue}
        error={errorAt(errors, '/value')}
        autoFocus
      />
      <div className={formClasses.buttons} data-end>
        <Button variant="default" onClick={onClose} disabled={busy}>
          Back
        </Button>
        <ReasonButton type="submit" loading={busy}>
          Replace value
        </ReasonButton>
      </div>
    </form>
  );
}

function DeleteButton({ secret }: Props) {
  const { id, tenantId } = secret;
  const navigate = useNavigate();
  const client = useQueryClient();
  const { started, ask, dialog } = useDeletion(secret, {
    remove: (header) =>
      answer(api.DELETE('/api/secrets/{id}', { params: { path: { id }, header } })),
    onDeleted: async () => {
      await navigate({ to: '/secrets' });
      client.removeQueries({ queryKey: secretQuery(id).queryKey });
      void client.invalidateQueries({ queryKey: ['secrets', 'list'] });
    },
    queryKey: secretQuery(id).queryKey,
  });
  return (
    <>
      <PermissionButton
        permission="secret:write"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        onClick={ask}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog
        {...dialog}
        title={`Delete ${started.name}`}
        confirm="Delete secret"
        typed={{ id, label: started.name }}
      >
        The value is lost. Jobs whose type asks for it fail with <code>secret_missing</code>, unless
        the platform has a secret with this name.
      </ConfirmDialog>
    </>
  );
}
