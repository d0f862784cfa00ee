import { maskText } from './credentials.ts';
import { MASK } from './mask.ts';

/** How many bytes of a response are recorded. */
export const MAX_EXCERPT_BYTES = 4_096;

/** Control characters, which a terminal that shows them could execute. */
// eslint-disable-next-line no-control-regex
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

const escapeControls = (text: string) =>
  text.replaceAll(
    CONTROL_CHARACTERS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Shorter values would be found in ordinary words. */
const MIN_CREDENTIAL_CHARS = 4;

/**
 * The start of a response, as it is recorded: credentials masked, among them those of the request,
 * which servers may repeat; control characters escaped; at most 4 KiB.
 */
export function responseExcerpt(
  response: { body: string; truncated: boolean },
  credentialsOfRequest: readonly string[] = [],
): { body: string; truncated: boolean } {
  const withoutRepeated = credentialsOfRequest
    .filter((value) => value.length >= MIN_CREDENTIAL_CHARS)
    .reduce((text, value) => text.replaceAll(value, MASK), response.body);
  const bytes = Buffer.from(escapeControls(maskText(withoutRepeated)));
  if (bytes.length <= MAX_EXCERPT_BYTES)
    return { body: bytes.toString(), truncated: response.truncated };
  // A character that the cut divides is left out.
  const body = new TextDecoder().decode(bytes.subarray(0, MAX_EXCERPT_BYTES), { stream: true });
  return { body, truncated: true };
}
