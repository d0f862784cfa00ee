/** What this file needs of the Trusted Types API, which TypeScript does not declare yet. */
type PolicyFactory = {
  createPolicy(name: string, rules: { createHTML(text: string): string }): unknown;
};

function refuseMarkup(text: string): string {
  if (text.includes('<')) throw new TypeError('Markup must not be set from a text');
  return text;
}

/**
 * The pages require Trusted Types: text that becomes markup or a script passes this policy or is
 * refused. Mantine writes its variables as the content of a style element, which has no markup.
 */
const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
trustedTypes?.createPolicy('default', { createHTML: refuseMarkup });
