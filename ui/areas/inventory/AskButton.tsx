import { useState } from 'react';
import { AskApproval } from '../../app/AskApproval.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import type { Where } from '../../parts/permissions.tsx';
import { bodyOf, type Mutations } from './usePlan.ts';

type Props = {
  mutation: Mutations;
  /** What the request is called at first: `Change the site ams1`. */
  title: string;
  where: Where;
  headers?: Readonly<Record<string, string>> | undefined;
  reason: string | undefined;
  onAsked: () => void;
};

/** Asks others to approve a change instead of making it. */
export function AskButton({ mutation, title, where, headers, reason, onAsked }: Props) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <PermissionButton
        permission="workflow:write"
        where={where}
        variant="default"
        icon="approval"
        reason={reason}
        onClick={() => setAsking(true)}
      >
        Ask for approval
      </PermissionButton>
      <AskApproval
        opened={isAsking}
        onClose={() => setAsking(false)}
        type="change"
        title={title}
        note="After the approval exactly this change is made, with your permissions. If it would do something else by then, it is not made."
        content={{ validationRequest: bodyOf(mutation) }}
        where={where}
        headers={headers}
        onAsked={onAsked}
      />
    </>
  );
}
