/** The form of ids: three letters of the kind, and a UUIDv7 in base 32. */
const ID = /^([a-z]{3})_[0-9a-z]{26}$/;

/** Pages of records, by the letters of their ids. Other records are found by `/id/<id>`. */
const PAGES: Readonly<Record<string, string>> = {
  apr: '/approvals',
  job: '/jobs',
  rnr: '/runners',
  sch: '/schedules',
  sec: '/secrets',
};

/** True for text that has the form of a record's id. */
export const isRecordId = (text: string): boolean => ID.test(text);

/** The path of the page of a record. */
export function recordPath(id: string): string {
  const page = PAGES[ID.exec(id)?.[1] ?? ''];
  return page === undefined ? `/id/${encodeURIComponent(id)}` : `${page}/${id}`;
}

/** The end of an id, by which people recognize it: `job_…q0q8s3rt`. */
export const shortId = (id: string): string =>
  isRecordId(id) ? `${id.slice(0, 4)}…${id.slice(-8)}` : id;
