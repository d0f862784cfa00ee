import type { TestResponse } from '../client.ts';

/** The id of no record, in the form of another one. */
export const idOfNone = (id: string): string =>
  /^[a-z]{3}_/.test(id) ? `${id.slice(0, -6)}zzzzzz` : `no-${id}`;

/** Headers that differ between answers to the same request. */
const CHANGING = new Set(['date', 'x-request-id', 'content-length', 'etag', 'connection']);

/** What a client learns from an answer, without the ids or names that it sent. */
export function learned({ status, headers, body }: TestResponse, ...sent: string[]): string {
  const text = JSON.stringify([
    status,
    [...headers].filter(([name]) => !CHANGING.has(name)),
    typeof body === 'object' && body !== null ? { ...body, requestId: undefined } : body,
  ]);
  return sent.reduce((masked, each) => masked.replaceAll(each, '<sent>'), text);
}

/** The same without new ids and times, for answers to requests that may create something. */
export const comparable = (answer: TestResponse, ...sent: string[]): string =>
  learned(answer, ...sent).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>');

const ID = /\b[a-z]{3}_[0-9a-z]{26}\b/g;

/**
 * Finds what a text has of a tenant: its name, which all texts of its estate have, its numbers, or ids of its records.
 */
export function leaksOf(tenant: string, network: number) {
  const marks = new RegExp(
    `${tenant}|10\\.${network}\\.|\\b${3_000 + network}\\b|65000:${network}`,
    'gi',
  );
  return (text: string, ids: ReadonlySet<string>): string[] => [
    // An id can have the letters of a short name by chance.
    ...(text.replaceAll(ID, '').match(marks) ?? []),
    ...(text.match(ID) ?? []).filter((id) => ids.has(id)),
  ];
}
