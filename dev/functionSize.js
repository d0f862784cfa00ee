/** Functions that build other functions: what is in their inner functions counts there. */
const FACTORY = /^(create|compose)[A-Z]/;

/** Lists of routes are data; only their inner functions count. */
const ROUTES = /(^r|R)outes$/;

/** The name under which a function is known: its own, or that of what it is assigned to. */
function nameOf(node) {
  if (node.id) return node.id.name;
  const { parent } = node;
  if (parent.type === 'VariableDeclarator' && parent.id.type === 'Identifier')
    return parent.id.name;
  return parent.type === 'Property' && parent.key.type === 'Identifier' ? parent.key.name : '';
}

/** Functions have at most `max` lines, without blank lines and comments. */
export const functionSize = {
  meta: {
    type: 'suggestion',
    schema: [{ type: 'integer' }],
    messages: { long: '{{name}} has {{lines}} lines, {{max}} are allowed: split it by meaning' },
  },
  create(context) {
    const [max = 60] = context.options;
    const { lines, getAllComments } = context.sourceCode;
    const isCounted = lines.map((line) => line.trim() !== '');
    for (const { loc } of getAllComments.call(context.sourceCode))
      for (let line = loc.start.line; line <= loc.end.line; line += 1) {
        const rest =
          (line === loc.start.line ? lines[line - 1].slice(0, loc.start.column) : '') +
          (line === loc.end.line ? lines[line - 1].slice(loc.end.column) : '');
        if (rest.trim() === '') isCounted[line - 1] = false;
      }
    /** For each function that is open: the lines that its inner functions account for. */
    const innerLines = [];

    const enter = () => innerLines.push(0);
    const exit = (node) => {
      const all = isCounted
        .slice(node.loc.start.line - 1, node.loc.end.line)
        .filter(Boolean).length;
      const inner = innerLines.pop();
      if (innerLines.length > 0) innerLines[innerLines.length - 1] += all;
      const name = nameOf(node);
      const count = FACTORY.test(name) ? all - inner : all;
      if (count > max && !ROUTES.test(name))
        context.report({
          loc: { start: node.loc.start, end: node.loc.start },
          messageId: 'long',
          data: { name: name || 'The function', lines: String(count), max: String(max) },
        });
    };
    const selector = ':function';
    return { [selector]: enter, [`${selector}:exit`]: exit };
  },
};
