import ts from 'typescript';
import type { ContractStep } from '../../db/core/migration.ts';

/** What a migration file says about its `up`. */
export type MigrationSource = {
  /** The SQL texts; an interpolated value is `__`. */
  sql: string[];
  /** The names of the functions and methods that are called. */
  calls: ReadonlySet<string>;
  runsInTransaction: boolean;
  contract: Partial<ContractStep> | undefined;
};

const VALUE = '__';

/** The declarations at the top of a file, by name. */
function declarationsOf(file: ts.SourceFile): Map<string, ts.Node> {
  const found = new Map<string, ts.Node>();
  for (const statement of file.statements) {
    if (ts.isFunctionDeclaration(statement) && statement.name)
      found.set(statement.name.text, statement);
    if (ts.isVariableStatement(statement))
      for (const declaration of statement.declarationList.declarations)
        if (ts.isIdentifier(declaration.name)) found.set(declaration.name.text, declaration);
  }
  return found;
}

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => VALUE + literal.text).join('');
}

function calledName({ expression }: ts.CallExpression): string | undefined {
  if (ts.isIdentifier(expression)) return expression.text;
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : undefined;
}

/** The value of a property of an object literal, as it is written. */
function propertyOf(node: ts.Node | undefined, name: string): ts.Expression | undefined {
  const object =
    node && ts.isVariableDeclaration(node) ? node.initializer && unwrap(node.initializer) : node;
  if (!object || !ts.isObjectLiteralExpression(object)) return undefined;
  const property = object.properties.find(
    (each): each is ts.PropertyAssignment =>
      ts.isPropertyAssignment(each) && each.name.getText() === name,
  );
  return property?.initializer;
}

const unwrap = (node: ts.Expression): ts.Expression =>
  ts.isAsExpression(node) || ts.isSatisfiesExpression(node) ? unwrap(node.expression) : node;

/** A text that may be joined of several with `+`. */
function joinedText(node: ts.Expression | undefined): string {
  if (!node) return '';
  if (ts.isBinaryExpression(node)) return joinedText(node.left) + joinedText(node.right);
  return textOf(node) ?? '';
}

/** Reads what `up` of a migration does: its own texts, and those of what it uses in the same file. */
export function readMigrationSource(name: string, text: string): MigrationSource {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const declarations = declarationsOf(file);
  const sql: string[] = [];
  const calls = new Set<string>();
  const visited = new Set<ts.Node>();

  function visit(node: ts.Node | undefined): void {
    if (!node || visited.has(node)) return;
    visited.add(node);
    const written = textOf(node);
    if (written !== undefined) sql.push(written);
    if (ts.isCallExpression(node)) calls.add(calledName(node) ?? '');
    if (ts.isIdentifier(node)) visit(declarations.get(node.text));
    ts.forEachChild(node, visit);
  }

  visit(declarations.get('up'));
  const contract = declarations.get('contract');
  return {
    sql,
    calls,
    runsInTransaction: propertyOf(declarations.get('config'), 'transaction')?.getText() !== 'false',
    contract: contract && {
      needs: joinedText(propertyOf(contract, 'needs')),
      reason: joinedText(propertyOf(contract, 'reason')),
    },
  };
}
