import type { IconName } from './iconPaths.ts';
import { labelOfField } from './format.ts';

/** What a status means for the reader. Each tone has a colour, and each status an icon and a text. */
export type Tone = 'good' | 'bad' | 'warning' | 'active' | 'neutral';

export type StatusDisplay = { tone: Tone; icon: IconName; label: string };

const GOOD: StatusDisplay = { tone: 'good', icon: 'circleCheck', label: '' };
const BAD: StatusDisplay = { tone: 'bad', icon: 'circleX', label: '' };
const WARNING: StatusDisplay = { tone: 'warning', icon: 'alertTriangle', label: '' };
const WAITING: StatusDisplay = { tone: 'active', icon: 'clock', label: '' };
const RUNNING: StatusDisplay = { tone: 'active', icon: 'loader', label: '' };
const ENDED: StatusDisplay = { tone: 'neutral', icon: 'ban', label: '' };

/** Statuses of jobs, approval requests, schedules, webhooks, deliveries, backups, tokens and records. */
const DISPLAYS: Readonly<Record<string, StatusDisplay>> = {
  queued: WAITING,
  pending: WAITING,
  buffered: WAITING,
  waiting: WAITING,
  planned: { ...WAITING, tone: 'neutral' },
  staged: { ...WAITING, tone: 'neutral' },
  reserved: { ...WAITING, tone: 'neutral' },
  running: RUNNING,
  creating: RUNNING,
  verifying: RUNNING,
  succeeded: GOOD,
  created: GOOD,
  updated: GOOD,
  approved: GOOD,
  accepted: GOOD,
  active: GOOD,
  enabled: GOOD,
  working: GOOD,
  connected: GOOD,
  verified: GOOD,
  available: GOOD,
  completed: GOOD,
  done: GOOD,
  fired: { ...GOOD, label: 'Started' },
  failed: BAD,
  rejected: BAD,
  denied: BAD,
  failing: BAD,
  offline: BAD,
  invalid: BAD,
  conflict: BAD,
  stale: WARNING,
  missed: WARNING,
  deprecated: WARNING,
  must_change_password: { ...WARNING, label: 'Must change password' },
  in_force: { ...WARNING, icon: 'lock', label: 'In force' },
  cancelled: ENDED,
  expired: { ...ENDED, icon: 'clock' },
  skipped: { ...ENDED, icon: 'skip' },
  disabled: { ...ENDED, icon: 'pause' },
  paused: { ...ENDED, icon: 'pause' },
  revoked: ENDED,
  released: ENDED,
  ended: ENDED,
  unchanged: { ...ENDED, icon: 'minus' },
  retired: ENDED,
  none: { tone: 'neutral', icon: 'minus', label: 'None' },
};

/** How a status is shown. A status that is not known here is shown as text. */
export function statusDisplay(status: string): StatusDisplay {
  const known = DISPLAYS[status] ?? { tone: 'neutral' as const, icon: 'dot' as const, label: '' };
  return { ...known, label: known.label || labelOfField(status) };
}
