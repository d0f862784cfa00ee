import { labelOfField } from '../format.ts';
import type { IconName } from '../iconPaths.ts';
import { ownValue } from '../ownValue.ts';

type Status = 'pending' | 'approved' | 'rejected' | 'expired' | 'cancelled';
type Execution = 'none' | 'queued' | 'running' | 'succeeded' | 'failed' | 'stale';

/** The state of a request and of what it runs. */
type State = { status: Status; execution: Execution };

/** How the state of a request is shown: a status that badges know, and its words. */
export type StateDisplay = { status: string; label: string };

const EXECUTIONS: Readonly<Record<Execution, StateDisplay>> = {
  none: { status: 'approved', label: 'Approved' },
  queued: { status: 'queued', label: 'Approved, waits' },
  running: { status: 'running', label: 'Running' },
  succeeded: { status: 'succeeded', label: 'Executed' },
  failed: { status: 'failed', label: 'Execution failed' },
  stale: { status: 'stale', label: 'Not executed: stale' },
};

const STATUSES: Readonly<Record<Exclude<Status, 'approved'>, StateDisplay>> = {
  pending: { status: 'pending', label: 'Pending' },
  rejected: { status: 'rejected', label: 'Rejected' },
  expired: { status: 'expired', label: 'Expired' },
  cancelled: { status: 'cancelled', label: 'Cancelled' },
};

/** The state of a request: after its approval, what has come out of it. */
export function stateOf({ status, execution }: State): StateDisplay {
  const known =
    status === 'approved' ? ownValue(EXECUTIONS, execution) : ownValue(STATUSES, status);
  const name = status === 'approved' ? execution : status;
  return known ?? { status: name, label: labelOfField(name) };
}

/** True while something can still happen to a request. */
export const isOpen = ({ status, execution }: State): boolean =>
  status === 'pending' || execution === 'queued' || execution === 'running';

type Decision = { icon: IconName; tone: 'good' | 'bad' | 'neutral'; text: string };

const DECISIONS: Readonly<Record<string, Decision>> = {
  approved: { icon: 'circleCheck', tone: 'good', text: 'approved' },
  rejected: { icon: 'circleX', tone: 'bad', text: 'rejected' },
  cancelled: { icon: 'ban', tone: 'neutral', text: 'cancelled the request' },
};

/** How a decision is shown, by its outcome. */
export const decisionOf = (outcome: string): Decision =>
  ownValue(DECISIONS, outcome) ?? { icon: 'dot', tone: 'neutral', text: outcome };

/** Why the reader may not decide, by the code in `you.reason`. */
const REASONS: Readonly<Record<string, string>> = {
  self_approval: 'You made this request. Another person must decide on it.',
  permission_denied: 'You do not hold the permission workflow:approve here.',
  not_assigned: 'The request is assigned neither to you nor to a role that you hold here.',
  already_decided: 'You have decided. The request waits for other people.',
  disabled: 'The account is disabled.',
  approved: 'The request is approved.',
  rejected: 'The request is rejected.',
  expired: 'The request has expired. Nobody can decide on it now.',
  cancelled: 'The request was cancelled.',
};

/** Why one may not decide, in words; a code that is not known here as it is. */
export const reasonText = (reason: string): string => REASONS[reason] ?? `Reason: ${reason}.`;

/** The same about an assigned person. */
const DECIDER_REASONS: Readonly<Record<string, string>> = {
  self_approval: 'made the request',
  permission_denied: 'may not approve here',
  not_assigned: 'not assigned',
  already_decided: 'has decided',
  disabled: 'account disabled',
};

/** Why an assigned person may not decide; undefined if the request is closed for everyone. */
export const deciderReason = (reason: string | null): string | undefined =>
  reason === null ? undefined : DECIDER_REASONS[reason];

/** A comment may be added by the requester, by deciders, and by who may ask there. */
export const mayComment = (reason: string | null, mayAsk: boolean): boolean =>
  mayAsk || (reason !== 'permission_denied' && reason !== 'not_assigned');
