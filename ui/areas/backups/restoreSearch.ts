/** The address of a restore that is prepared: what is chosen, and its preview. */
export type RestoreSearch = {
  /** Names of sections, separated by commas; without it all of the backup. */
  sections?: string | undefined;
  /** The job of the preview. */
  preview?: string | undefined;
  /** The risk that no administrator, or not the user, could sign in is accepted. */
  accept?: 'on' | undefined;
};

const JOB = /^job_[0-9a-z]{26}$/;
const NAMES = /^[a-z]+(,[a-z]+)*$/;

const textOf = (value: unknown, pattern: RegExp): string | undefined =>
  typeof value === 'string' && pattern.test(value) ? value : undefined;

export const validateRestoreSearch = (raw: Readonly<Record<string, unknown>>): RestoreSearch => ({
  sections: textOf(raw.sections, NAMES),
  preview: textOf(raw.preview, JOB),
  accept: raw.accept === 'on' ? 'on' : undefined,
});
