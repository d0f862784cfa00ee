import { functionSize } from './functionSize.js';

/** Reports the nodes of one type for which `isWrong` holds. */
const forbidden = (type, message, isWrong) => ({
  meta: { type: 'problem', schema: [], messages: { found: message } },
  create: (context) => ({
    [type](node) {
      if (isWrong(node)) context.report({ node, messageId: 'found' });
    },
  }),
});

const isMember = (node, property) =>
  node.type === 'MemberExpression' && node.property.name === property;

const isDate = (node) => node.type === 'Identifier' && node.name === 'Date';

const BROWSER_CLOCK = 'The clock of the browser may be wrong: use parts/clock.ts.';

/** The rules of this project, for oxlint. */
export default {
  meta: { name: 'holdfast' },
  rules: {
    'function-size': functionSize,
    'sql-in-db': forbidden(
      'CallExpression',
      'SQL belongs to db/.',
      ({ callee }) =>
        callee.type === 'MemberExpression' && /^raw$|.Raw$/.test(callee.property.name),
    ),
    'no-date-now': forbidden(
      'MemberExpression',
      BROWSER_CLOCK,
      (node) => isDate(node.object) && isMember(node, 'now'),
    ),
    'no-new-date': forbidden(
      'NewExpression',
      BROWSER_CLOCK,
      (node) => isDate(node.callee) && node.arguments.length === 0,
    ),
  },
};
