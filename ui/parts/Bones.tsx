import classes from './Bones.module.css';

/** What is shown instead of rows while they are read for the first time; a quick answer shows nothing. */
export function Bones({ rows }: { rows: number }) {
  return (
    <div className={classes.bones} role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className={classes.bone} />
      ))}
    </div>
  );
}
