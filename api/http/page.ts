import type { Context } from 'koa';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escapeHtml = (text: string) =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');

/** A plain HTML page. `title` is escaped; `body` is markup. */
export const htmlPage = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
</head>
<body>
${body}
</body>
</html>
`;

/** Browsers send about 150 characters, without quotes. */
const MAX_ACCEPT_LENGTH = 1_024;

/**
 * True for a client that prefers a page to JSON. A header that no browser sends counts as one that accepts
 * anything: Koa takes quadratic time for commas after a quote, and for parameters.
 */
export function prefersPage(ctx: Context): boolean {
  const accept = ctx.get('accept');
  if (accept.length > MAX_ACCEPT_LENGTH || accept.includes('"')) return false;
  return ctx.accepts('json', 'html') === 'html';
}
