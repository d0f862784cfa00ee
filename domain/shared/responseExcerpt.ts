import { escapeControls } from './controlCharacters.ts';
import { maskText } from './credentials.ts';
import { MASK } from './mask.ts';

/** How many bytes of a response are recorded. */
export const MAX_EXCERPT_BYTES = 4_096;

/** Shorter values would be found in ordinary words. */
const MIN_CREDENTIAL_CHARS = 4;

/** If a request has more credentials, its response is not recorded: each of them is searched in it. */
const MAX_CREDENTIALS = 1_000;

/** What was received of a response. `truncated`: the rest of the body was not read. */
type ReceivedBody = { body: string; truncated: boolean };

/**
 * The first `maxChars` characters of a body or a few more, without credentials. Undefined if there are too
 * many of them.
 */
function withoutCredentials(
  { body, truncated }: ReceivedBody,
  credentials: readonly string[],
  maxChars = body.length,
): { text: string; isCut: boolean } | undefined {
  const searched = new Set(credentials.filter((value) => value.length >= MIN_CREDENTIAL_CHARS));
  if (searched.size > MAX_CREDENTIALS) return undefined;
  const longest = Math.max(0, ...[...searched].map((value) => value.length));
  const start = body.slice(0, maxChars + longest);
  const masked = [...searched].reduce((text, value) => text.replaceAll(value, MASK), start);
  // The cut may have divided a credential, which is no longer found as a whole.
  const isCut = truncated || start.length < body.length;
  return { text: isCut ? masked.slice(0, Math.max(0, masked.length - longest)) : masked, isCut };
}

/**
 * The start of a response, as it is recorded: credentials masked, among them those of the request,
 * which servers may repeat; control characters escaped; at most 4 KiB. Only the mask if the request has more than 1,000
 * credentials.
 */
export function responseExcerpt(
  response: ReceivedBody,
  credentialsOfRequest: readonly string[] = [],
): ReceivedBody {
  const found = withoutCredentials(response, credentialsOfRequest, MAX_EXCERPT_BYTES);
  if (!found) return { body: MASK, truncated: true };
  const bytes = Buffer.from(escapeControls(maskText(found.text)));
  if (bytes.length <= MAX_EXCERPT_BYTES) return { body: bytes.toString(), truncated: found.isCut };
  // A character that the cut divides is left out.
  const body = new TextDecoder().decode(bytes.subarray(0, MAX_EXCERPT_BYTES), { stream: true });
  return { body, truncated: true };
}

/** A response as it is given to callers, without the credentials of the request; only the mask if it has too many. */
export function withoutRequestCredentials<
  T extends ReceivedBody & { headers: Record<string, string> },
>(response: T, credentialsOfRequest: readonly string[]): T {
  const clean = (body: string, truncated = false) =>
    withoutCredentials({ body, truncated }, credentialsOfRequest)?.text ?? MASK;
  const headers = Object.entries(response.headers).map(([name, value]) => [name, clean(value)]);
  return {
    ...response,
    body: clean(response.body, response.truncated),
    headers: Object.fromEntries(headers) as Record<string, string>,
  };
}
