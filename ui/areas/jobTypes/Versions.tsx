import { FieldDiff } from '../../parts/diff/FieldDiff.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import classes from './JobTypes.module.css';
import type { JobTypeWithVersions } from './typeQueries.ts';
import { acceptedDefinition, definitionRows, shortDigest } from './typeText.ts';

type Version = JobTypeWithVersions['versions'][number];

/** What runners have announced, newest first, each with what differs from the accepted definition. */
export function Versions({ type }: { type: JobTypeWithVersions }) {
  const { canAnywhere } = usePermissions();
  const isReader = canAnywhere('jobtype:read') || canAnywhere('jobtype:write');
  return (
    <Section title="Versions">
      {!isReader && <p className={classes.muted}>Versions need the permission jobtype:read.</p>}
      <ul className={classes.versions}>
        {type.versions.map((version) => (
          <li key={version.digest} className={classes.version}>
            <VersionHead version={version} type={type} />
            {version.digest !== type.digest && <Difference type={type} version={version} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function VersionHead({ version, type }: { version: Version; type: JobTypeWithVersions }) {
  const { digest, accepted, runners, firstSeenAt } = version;
  const isAccepted = accepted && type.acceptedAt !== null;
  return (
    <div className={classes.versionHead}>
      <code title={digest}>{shortDigest(digest)}</code>
      <StatusBadge status={isAccepted ? 'accepted' : 'waiting'} plain />
      <span className={classes.muted}>
        {formatNumberOf(runners, 'living runner')}, first announced <Time value={firstSeenAt} />
      </span>
    </div>
  );
}

/** What a version changes; of a type that was never accepted, all that it says. */
export function Difference({ type, version }: { type: JobTypeWithVersions; version: Version }) {
  const before = acceptedDefinition(type);
  return (
    <FieldDiff
      label={`What the version ${shortDigest(version.digest)} changes`}
      rows={definitionRows(before, version.definition)}
      action={before === undefined ? 'create' : 'update'}
    />
  );
}
