import path from 'node:path';

/** Lines that the command prints in each attempt: `line 1` and so on. */
export const LINES = 5;

/** The artifact that the command leaves in each attempt, and its content. */
export const ARTIFACT = 'note';
export const artifactOf = (attempt: number): string => `of ${attempt}\n`;

/** Where attempts note themselves when they start. */
export const runsFile = (folder: string): string => path.join(folder, 'runs');

/** While this file exists, attempts that have started go no further. */
export const holdFile = (folder: string): string => path.join(folder, 'hold');

/** What the environment of each command has: its processes are found by it. */
export const markOf = (folder: string): string => `KILLS_OF=${folder}`;

/**
 * The part `run` of a declared type for tests that kill processes: each attempt notes itself in `folder`,
 * holds a lock of its job, and leaves a child. The first attempt of a job with `{"failFirst": true}` fails
 * with exit code 75.
 */
export const killedCommand = (folder: string) => ({
  argv: [
    'bash',
    '-c',
    `exec 9>"${folder}/$HOLDFAST_JOB_ID.lock"
    flock -n 9 || echo "$HOLDFAST_JOB_ID overlap" >> ${runsFile(folder)}
    echo "$HOLDFAST_JOB_ID $HOLDFAST_ATTEMPT" >> ${runsFile(folder)}
    sleep 300 & while [ -e ${holdFile(folder)} ]; do sleep 0.1; done
    for n in $(seq ${LINES}); do echo "line $n"; sleep 0.2; done
    echo "of $HOLDFAST_ATTEMPT" > $HOLDFAST_ARTIFACTS/${ARTIFACT}
    [ $HOLDFAST_ATTEMPT = 1 ] && grep -q failFirst $HOLDFAST_PAYLOAD && exit 75
    echo '{}' > $HOLDFAST_RESULT`,
  ],
  env: { KILLS_OF: folder },
});
