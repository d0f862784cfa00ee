import { invalidField } from '../../domain/shared/errors.ts';

/** The supported preferences of a request (RFC 7240). Others are ignored, as the RFC requires. */
export type Preferences = { waitMs: number; timing: boolean };

const MAX_WAIT_SECONDS = 60;

/** Whole seconds, with or without quotation marks. */
const SECONDS = /^"?\d{1,6}"?$/;

/** Reads `Prefer`. `waitMs` is undefined if `wait` is not a whole number of seconds. */
export function preferencesIn(header: string): { waitMs: number | undefined; timing: boolean } {
  const values = new Map<string, string>();
  for (const part of header.split(',')) {
    const [name = '', value = ''] = (part.split(';')[0] ?? '')
      .split('=')
      .map((text) => text.trim());
    // The first of a repeated preference counts.
    if (!values.has(name.toLowerCase())) values.set(name.toLowerCase(), value);
  }
  const wait = values.get('wait') ?? '0';
  const seconds = SECONDS.test(wait) ? Number(wait.replaceAll('"', '')) : undefined;
  return {
    waitMs: seconds === undefined ? undefined : Math.min(seconds, MAX_WAIT_SECONDS) * 1_000,
    timing: values.has('timing'),
  };
}

/** Parses `Prefer`. Error: `invalid_request` if `wait` is not a whole number of seconds. */
export function readPrefer(header: string): Preferences {
  const { waitMs, timing } = preferencesIn(header);
  if (waitMs === undefined)
    throw invalidField(
      'header',
      '/Prefer',
      'format',
      'wait must be a whole number of seconds, such as wait=10',
    );
  return { waitMs, timing };
}
