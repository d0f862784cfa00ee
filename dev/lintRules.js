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

const COUNTED =
  /^ (?:accounts|approvals|archives|attempts|devices|entries|files|grants|jobs|processes|records|requests|rows|runners|schedules|secrets|sessions|tables|tenants|units|users|values)\b/;

/** True for a number that may be 1; constants are limits, which are more. */
const mayBeOne = (node) => {
  if (node.type === 'CallExpression') return node.arguments.some(mayBeOne);
  if (node.type === 'BinaryExpression') return mayBeOne(node.left);
  return !(node.type === 'Identifier' && /^[A-Z]/.test(node.name));
};

/** True for a text such as `${n} rows`, which is wrong for 1. */
const isPluralOnly = ({ quasis, expressions }) =>
  expressions.some((each, i) => mayBeOne(each) && COUNTED.test(quasis[i + 1].value.raw));

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
    'counted-nouns': forbidden(
      'TemplateLiteral',
      'A number with its noun is `counted(n, noun)`, or `formatNumberOf` in the console.',
      isPluralOnly,
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
