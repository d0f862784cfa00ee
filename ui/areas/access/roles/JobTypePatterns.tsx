import classes from '../Access.module.css';

/** The job types that a role names, in words. */
export function JobTypePatterns({ jobTypes }: { jobTypes: readonly string[] }) {
  if (jobTypes.length === 0)
    return (
      <p className={classes.muted}>
        It names no job types, so it allows no jobs of types that are granted by name.
      </p>
    );
  return (
    <ul className={classes.chips} aria-label="Job types granted by name">
      {jobTypes.map((pattern) => (
        <li key={pattern} className={classes.chip}>
          {pattern === '*' ? '* (all)' : pattern}
        </li>
      ))}
    </ul>
  );
}
