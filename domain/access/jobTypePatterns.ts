/** The form of a pattern of job types: the name of a type, an area such as `net.*`, or `*`. */
export const JOB_TYPE_PATTERN = '^(\\*|[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*)*(\\.\\*)?)$';

/** Patterns that a role may have. */
export const MAX_ROLE_JOB_TYPES = 100;

/** True when a pattern covers the name of a job type, or another pattern completely. */
export const coversJobType = (pattern: string, nameOrPattern: string): boolean =>
  pattern === '*' ||
  pattern === nameOrPattern ||
  (pattern.endsWith('.*') && nameOrPattern.startsWith(pattern.slice(0, -1)));

/** Every pattern that covers the name of a job type, for queries. */
export function patternsCovering(name: string): string[] {
  const words = name.split('.');
  const areas = words.slice(1).map((_, i) => `${words.slice(0, i + 1).join('.')}.*`);
  return ['*', ...areas, name];
}
