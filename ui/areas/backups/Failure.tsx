import { ProblemNote } from '../../parts/ProblemNote.tsx';

type Props = { title: string; error: { code: string; message: string } };

/** Why a backup, or what was done with one, has failed. */
export const Failure = ({ title, error: { code, message } }: Props) => (
  <ProblemNote
    problem={{ status: 0, title, detail: message, code, errors: [] }}
    retry={undefined}
  />
);
