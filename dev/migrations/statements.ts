/** A statement of a migration, without comments and the contents of strings and of functions. */
export type Statement = { text: string; isDynamic: boolean };

const collapse = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** The bodies of functions run later, those of DO now. */
function unwrapBodies(text: string): string {
  return text.replace(/\$(\w*)\$([\s\S]*?)\$\1\$/g, (_, _tag: string, body: string, at: number) => {
    const start = text.lastIndexOf(';', at) + 1;
    return /^\s*DO\b/i.test(text.slice(start, at)) ? `; ${body} ;` : ' BODY ';
  });
}

/** Splits the SQL of a migration into statements. */
export function statementsOf(sql: string): Statement[] {
  const bare = unwrapBodies(sql.replace(/--.*$/gm, '').replace(/\/\*[\s\S]*?\*\//g, ' '))
    .replace(/'(?:[^']|'')*'/g, "''")
    .split(';')
    .map(collapse);
  return bare
    .filter((text) => text !== '')
    .map((text) => ({ text, isDynamic: /\bEXECUTE (?!FUNCTION|PROCEDURE)/i.test(text) }));
}

/** Splits a list at the commas that are in no parentheses. */
export function splitList(list: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = '';
  for (const char of list) {
    if (char === '(') depth++;
    if (char === ')') depth--;
    if (char === ',' && depth === 0) {
      parts.push(part.trim());
      part = '';
    } else part += char;
  }
  return [...parts, part.trim()];
}
