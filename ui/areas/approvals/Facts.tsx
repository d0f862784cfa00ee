import { Actor } from '../../parts/Actor.tsx';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Exact } from '../../parts/Exact.tsx';
import type { Names } from '../../parts/names.ts';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import { deciderReason } from '../../parts/approvals/states.ts';
import classes from './Facts.module.css';

type Props = { request: ApprovalRequest; names: Names };

type Decider = ApprovalRequest['deciders']['users'][number];

const named = ({ id, username, provider }: Decider, displayName: string): Names => ({
  people: { [id]: { displayName, provider, ...(username !== null && { username }) } },
});

/** Who may decide: people and roles, and why one of them may not. */
function Deciders({ request, names }: Props) {
  const { users, roles } = request.deciders;
  return (
    <ul className={classes.deciders}>
      {users.map((user) => {
        const { id, displayName, reason } = user;
        const why = deciderReason(reason);
        return (
          <li key={id}>
            <Actor id={id} names={displayName === null ? names : named(user, displayName)} full />
            {why !== undefined && <span className={classes.why}> ({why})</span>}
          </li>
        );
      })}
      {roles.map(({ id, name, mayApprove }) => (
        <li key={id}>
          role <Exact text={name} />
          {!mayApprove && <span className={classes.why}> (does not include workflow:approve)</span>}
        </li>
      ))}
    </ul>
  );
}

/** The facts beside the change. */
export function Facts({ request, names }: Props) {
  const {
    approvals,
    requiredApprovals,
    type,
    expiresAt,
    executeAt,
    createdAt,
    status,
    contentHash,
  } = request;
  return (
    <Section title="Request">
      <DescriptionList
        items={[
          {
            label: 'Kind',
            value: (
              <span dir="auto">
                <Exact text={type} />
              </span>
            ),
          },
          { label: 'Approvals', value: `${approvals} of ${requiredApprovals}` },
          { label: 'May decide', value: <Deciders request={request} names={names} /> },
          { label: 'Asked', value: <Time value={createdAt} /> },
          {
            label: status === 'pending' ? 'Until' : 'Was open until',
            value: <Time value={expiresAt} />,
          },
          executeAt !== null && { label: 'Not before', value: <Time value={executeAt} /> },
          {
            label: 'Content',
            value: (
              <span className={classes.hash}>
                <code title={contentHash}>{contentHash.slice(0, 12)}</code>
                <CopyButton value={contentHash} label="Copy the content hash" />
              </span>
            ),
          },
        ]}
      />
    </Section>
  );
}
