import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLiveRefresh } from '../../app/live.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Json } from '../../parts/Json.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { TypeActions } from './TypeActions.tsx';
import { TypeFacts } from './TypeFacts.tsx';
import { typeQuery } from './typeQueries.ts';
import { Versions } from './Versions.tsx';

const route = getRouteApi('/frame/job-types/$name');

const PARENT = { label: 'Job types', to: '/job-types' };

/** A job type: what its jobs take, and the versions that runners have announced. */
export function JobTypePage() {
  const { name } = route.useParams();
  const { data: type, error, refetch } = useQuery(typeQuery(name));
  useTitle(type && `Job type ${type.name}`);
  useLiveRefresh(
    ['job-type.*'],
    typeQuery(name).queryKey,
    ({ data }) => data.name === undefined || data.name === name,
  );
  if (!type)
    return (
      <RecordPage parent={PARENT} title={name}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the job type" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      title={type.name}
      badge={<StatusBadge status={type.state} />}
      note={type.summary}
      actions={<TypeActions key={type.name} type={type} />}
      aside={<TypeFacts type={type} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {type.origin === 'runner' && <Versions type={type} />}
      <Section title="Payload schema">
        <Json value={type.payloadSchema} label="Payload schema" />
      </Section>
      {type.resultSchema !== null && (
        <Section title="Result schema">
          <Json value={type.resultSchema} label="Result schema" />
        </Section>
      )}
    </RecordPage>
  );
}
