import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Actor } from '../../../parts/Actor.tsx';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import type { Names } from '../../../parts/names.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { Section } from '../../../parts/Section.tsx';
import { Time } from '../../../parts/Time.tsx';
import { AuditSection } from '../AuditSection.tsx';
import { RoleAllows } from '../roles/RoleAllows.tsx';
import { UnreadRecord } from '../UnreadRecord.tsx';
import { Grantee } from './Grantee.tsx';
import { assignmentQuery, mappingQuery, type Grant } from './grantQueries.ts';
import { granteeText, roleText } from './grantText.ts';
import { Members } from './Members.tsx';
import { RemoveGrant } from './RemoveGrant.tsx';
import { ScopeText } from './ScopeText.tsx';

const assignmentRoute = getRouteApi('/frame/access/assignments/$assignmentId');
const mappingRoute = getRouteApi('/frame/access/mappings/$mappingId');

const ASSIGNMENTS = { label: 'Assignments', to: '/access/assignments' };
const MAPPINGS = { label: 'Group mappings', to: '/access/mappings' };

/** A role assignment. */
export function AssignmentPage() {
  const { assignmentId: id } = assignmentRoute.useParams();
  const navigate = assignmentRoute.useNavigate();
  const { data, error, refetch } = useQuery(assignmentQuery(id));
  if (!data)
    return (
      <UnreadRecord parent={ASSIGNMENTS} title="Assignment" id={id} error={error} retry={refetch} />
    );
  return (
    <OneGrant
      grant={data}
      parent={ASSIGNMENTS}
      error={error}
      retry={refetch}
      leave={() => navigate({ to: '/access/assignments' })}
    />
  );
}

/** A mapping of a group to a role. */
export function MappingPage() {
  const { mappingId: id } = mappingRoute.useParams();
  const navigate = mappingRoute.useNavigate();
  const { data, error, refetch } = useQuery(mappingQuery(id));
  if (!data)
    return (
      <UnreadRecord parent={MAPPINGS} title="Group mapping" id={id} error={error} retry={refetch} />
    );
  return (
    <OneGrant
      grant={data}
      parent={MAPPINGS}
      error={error}
      retry={refetch}
      leave={() => navigate({ to: '/access/mappings' })}
    />
  );
}

type Props = {
  grant: Grant & { included?: Names | undefined };
  parent: { label: string; to: string };
  error: unknown;
  retry: () => unknown;
  leave: () => unknown;
};

function OneGrant({ grant, parent, error, retry, leave }: Props) {
  const names = grant.included;
  const who = granteeText(grant, names);
  return (
    <RecordPage
      parent={parent}
      id={grant.id}
      title={`${roleText(grant, names)} for ${who}`}
      actions={<RemoveGrant grant={grant} names={names} onDone={leave} />}
      aside={
        <Section title="Details">
          <DescriptionList
            items={[
              { label: 'Who', value: <Grantee grant={grant} names={names} /> },
              {
                label: 'Role',
                value: <RecordLink id={grant.roleId} names={names} kind="roles" />,
              },
              { label: 'Where', value: <ScopeText grant={grant} names={names} /> },
              { label: 'Granted', value: <Time value={grant.createdAt} /> },
              { label: 'Granted by', value: <Actor id={grant.createdBy} names={names} /> },
            ]}
          />
        </Section>
      }
    >
      {error !== null && <ProblemNote problem={error} retry={() => void retry()} />}
      {'externalGroup' in grant && (
        <Members providerId={grant.providerId} group={grant.externalGroup} />
      )}
      <RoleAllows roleId={grant.roleId} />
      <AuditSection title="History" by="subjectId" id={grant.id} />
    </RecordPage>
  );
}
