import { useQuery } from '@tanstack/react-query';
import { CopyButton } from '../../parts/CopyButton.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { formatBytes, formatNumberOf } from '../../parts/format.ts';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import { artifactsQuery, type Artifact, type Job } from './jobQueries.ts';
import { isFinal } from './jobText.ts';
import classes from './Jobs.module.css';
import { useArtifactDownload } from './useArtifactDownload.ts';

/** An artifact is no event of its job. */
const ARTIFACTS_MS = 10_000;

/** The files that a job of runners has left. */
export function JobArtifacts({ job: { id, status } }: { job: Job }) {
  const isEnded = isFinal(status);
  const { data, error, refetch } = useQuery({
    ...artifactsQuery(id, isEnded),
    refetchInterval: isEnded ? false : ARTIFACTS_MS,
  });
  const artifacts = data?.items ?? [];
  return (
    <Section
      title="Artifacts"
      note={artifacts.length > 0 ? formatNumberOf(artifacts.length, 'file') : undefined}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data && artifacts.length === 0 && (
        <p className={classes.muted}>
          {isEnded ? 'The job has left no files.' : 'The job has left no files yet.'}
        </p>
      )}
      {artifacts.length > 0 && (
        <ul className={classes.artifacts} aria-label="Artifacts">
          {artifacts.map((artifact) => (
            <ArtifactItem key={artifact.name} jobId={id} artifact={artifact} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function ArtifactItem({ jobId, artifact }: { jobId: string; artifact: Artifact }) {
  const { name, bytes, sha256, attempt, createdAt } = artifact;
  const { download, progress, problem } = useArtifactDownload(jobId, artifact);
  const isBusy = progress !== undefined;
  return (
    <li className={classes.artifact}>
      <div className={classes.artifactName}>
        <strong>
          <Exact text={name} />
        </strong>
        <span className={classes.muted}>
          {formatBytes(bytes)}, attempt {attempt}, <Time value={createdAt} />
        </span>
        <span className={classes.muted}>
          SHA-256 <code title={sha256}>{sha256.slice(0, 12)}</code>{' '}
          <CopyButton value={sha256} label={`Copy the SHA-256 of ${name}`} />
        </span>
      </div>
      <ReasonButton
        variant="default"
        icon="download"
        reason={isBusy ? 'It is being downloaded.' : undefined}
        onClick={download}
      >
        {isBusy ? `${Math.round(progress * 100)} %` : `Download ${name}`}
      </ReasonButton>
      <RefusedNote problem={problem} />
    </li>
  );
}
