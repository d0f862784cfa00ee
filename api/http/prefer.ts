import { invalidField } from '../../domain/shared/errors.ts';

/** The supported preferences of a request (RFC 7240). Others are ignored, as the RFC requires. */
export type Preferences = { waitMs: number; timing: boolean };

const MAX_WAIT_SECONDS = 60;

/** Parses `Prefer`. Error: `invalid_request` if `wait` is not a whole number of seconds. */
export function readPrefer(header: string | undefined): Preferences {
  const preferences: Preferences = { waitMs: 0, timing: false };
  for (const part of (header ?? '').split(',')) {
    const [name = '', value = ''] =
      part
        .split(';')[0]
        ?.split('=')
        .map((text) => text.trim()) ?? [];
    if (name.toLowerCase() === 'timing') preferences.timing = true;
    if (name.toLowerCase() !== 'wait') continue;
    if (!/^"?\d{1,6}"?$/.test(value)) {
      throw invalidField(
        'header',
        '/Prefer',
        'format',
        'wait must be a whole number of seconds, such as wait=10',
      );
    }
    preferences.waitMs = Math.min(Number(value.replaceAll('"', '')), MAX_WAIT_SECONDS) * 1_000;
  }
  return preferences;
}
