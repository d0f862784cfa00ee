import classes from './Backups.module.css';

const STEPS = ['Sections', 'Differences', 'Confirm'];

/** Which of the three steps of a restore is shown. */
export const Steps = ({ present }: { present: number }) => (
  <ol className={classes.steps} aria-label="Steps">
    {STEPS.map((step, index) => (
      <li key={step} aria-current={index === present ? 'step' : undefined}>
        {index + 1}. {step}
      </li>
    ))}
  </ol>
);
