/** The address of the form for a new schedule: the type of its jobs. */
export type NewScheduleSearch = { jobType?: string | undefined };

export const validateNewScheduleSearch = ({
  jobType,
}: Readonly<Record<string, unknown>>): NewScheduleSearch => ({
  jobType: typeof jobType === 'string' && jobType !== '' ? jobType : undefined,
});
