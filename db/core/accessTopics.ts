import type { AuditRow } from './unitOfWork.ts';

/** Topic of `Notifications` for changes of the rights of many callers: roles, mappings, providers. */
export const ACCESS_TOPIC = 'access';

/** Topic for changes of what one user, session or API token may do. */
export const accessTopicOf = (type: 'user' | 'session' | 'token', id: string): string =>
  `${ACCESS_TOPIC}:${type}:${id}`;

type Entry = Pick<AuditRow, 'action' | 'outcome' | 'subject' | 'before' | 'after'>;

const ofSubject =
  (type: 'user' | 'session' | 'token') =>
  ({ subject, outcome, action }: Entry): string[] =>
    // A session ends also because someone else uses its token, which is a denied attempt.
    outcome === 'done' || action === 'session.token_reuse' ? [accessTopicOf(type, subject.id)] : [];

const ofAll =
  (...actions: string[]) =>
  ({ action, outcome }: Entry): string[] =>
    outcome === 'done' && actions.includes(action) ? [ACCESS_TOPIC] : [];

const ofAssignedUser = ({ before, after, outcome }: Entry): string[] => {
  const { userId } = (after ?? before ?? {}) as { userId?: unknown };
  return outcome === 'done' && typeof userId === 'string' ? [accessTopicOf('user', userId)] : [];
};

/** By subject of an audit entry: what it changes for callers. */
const TOPICS: Readonly<Record<string, (entry: Entry) => string[]>> = {
  user: ofSubject('user'),
  session: ofSubject('session'),
  token: ofSubject('token'),
  assignment: ofAssignedUser,
  role: ofAll('role.update', 'role.delete'),
  mapping: ofAll('mapping.create', 'mapping.delete'),
  provider: ofAll('provider.update', 'provider.delete'),
  backup: ofAll('backup.restore'),
};

/** The topics of a commit that changes what callers may do, from its audit entries. */
export const accessTopics = (entries: readonly Entry[]): string[] => [
  ...new Set(entries.flatMap((entry) => TOPICS[entry.subject.type]?.(entry) ?? [])),
];
