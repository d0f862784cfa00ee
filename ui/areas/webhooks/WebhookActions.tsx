import { useState, type ReactNode } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { DeleteButton } from './DeleteButton.tsx';
import { EnableButton } from './EnableButton.tsx';
import { ReplayDialog } from './ReplayDialog.tsx';
import { RotateDialog } from './RotateDialog.tsx';
import { TestDialog } from './TestDialog.tsx';
import type { WebhookDetail } from './webhookQueries.ts';

type Props = { webhook: WebhookDetail; onNote: (note: ReactNode) => void };
type Open = 'test' | 'replay' | 'rotate' | undefined;

/** What can be done with a webhook. */
export function WebhookActions({ webhook, onNote }: Props) {
  const { id, tenantId, enabled } = webhook;
  const [open, setOpen] = useState<Open>();
  const navigate = useNavigate();
  const shared = {
    permission: 'webhook:write',
    where: { tenantId },
    variant: 'default',
  } as const;
  const close = () => setOpen(undefined);
  return (
    <>
      <PermissionButton {...shared} icon="bolt" onClick={() => setOpen('test')}>
        Test
      </PermissionButton>
      <PermissionButton
        {...shared}
        icon="history"
        reason={enabled ? undefined : 'The webhook is disabled; enable it first.'}
        onClick={() => setOpen('replay')}
      >
        Replay
      </PermissionButton>
      <PermissionButton {...shared} icon="key" onClick={() => setOpen('rotate')}>
        Rotate secret
      </PermissionButton>
      <EnableButton webhook={webhook} />
      <PermissionButton
        {...shared}
        icon="edit"
        onClick={() =>
          void navigate({ to: '/webhooks/$webhookId/edit', params: { webhookId: id } })
        }
      >
        Edit
      </PermissionButton>
      <DeleteButton webhook={webhook} />
      <TestDialog webhook={webhook} opened={open === 'test'} onClose={close} />
      <ReplayDialog webhook={webhook} opened={open === 'replay'} onClose={close} onNote={onNote} />
      <RotateDialog webhook={webhook} opened={open === 'rotate'} onClose={close} />
    </>
  );
}
