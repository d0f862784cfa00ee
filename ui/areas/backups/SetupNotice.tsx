import { Alert } from '@mantine/core';
import type { Schemas } from '../../app/api.ts';
import { Empty } from '../../parts/Empty.tsx';
import classes from './Backups.module.css';

type Props = { problems: readonly Schemas['Failure'][] };

/** The messages of the service name the variables that are missing. */
const Messages = ({ problems }: Props) => (
  <>
    {problems.map(({ code, message }) => (
      <p key={code} className={classes.paragraph}>
        {message}
      </p>
    ))}
    <p className={classes.paragraph}>
      Set it for every process and restart them; <code>docs/configuration.md</code> describes the
      variables.
    </p>
  </>
);

/** Instead of a list: backups cannot be made. */
export const MissingSetup = ({ problems }: Props) => (
  <Empty kind="notSetUp" title="Backups are not set up" detail={<Messages problems={problems} />} />
);

/** Above a list: there are backups, and no more can be made. */
export const SetupNotice = ({ problems }: Props) => (
  <Alert color="yellow" title="No backup can be made" role="status">
    <Messages problems={problems} />
  </Alert>
);
