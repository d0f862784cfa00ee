import { globSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

/**
 * `npm run check` runs this: nothing in `api/` has the type of an Objection model, whatever alias it comes
 * through. A column that is added to a model must not become a change of the API that nobody sees. oxlint's
 * own rules cannot ask for types.
 */
const ROOT = path.resolve(import.meta.dirname, '..');

/** Where models are declared. */
const MODELS = '/db/models/';

/** How deep a model may be: in an array of a promise of a union. */
const MAX_DEPTH = 3;

/** The file of the model behind a type, of what it is an array or a promise of, or of a member of its union. */
function modelFile(checker: ts.TypeChecker, type: ts.Type, depth = 0): string | undefined {
  const file = [type.aliasSymbol, type.getSymbol()]
    .flatMap((symbol) => symbol?.declarations ?? [])
    .map((declaration) => declaration.getSourceFile().fileName)
    .find((name) => name.includes(MODELS));
  if (file !== undefined || depth === MAX_DEPTH) return file;
  const inner = [
    ...(type.isUnionOrIntersection() ? type.types : []),
    ...checker.getTypeArguments(type as ts.TypeReference),
  ];
  for (const each of inner) {
    const found = modelFile(checker, each, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The names of parameters and variables of a file, also those in patterns. */
function declaredNames(file: ts.SourceFile): ts.Identifier[] {
  const found: ts.Identifier[] = [];
  const visit = (node: ts.Node): void => {
    if (
      (ts.isParameter(node) || ts.isVariableDeclaration(node) || ts.isBindingElement(node)) &&
      ts.isIdentifier(node.name)
    )
      found.push(node.name);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** What in these files has the type of a model. */
export function findModels(fileNames: readonly string[]): string[] {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), ts.sys.readFile) as {
    config: { compilerOptions: unknown };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const program = ts.createProgram(fileNames, options);
  const checker = program.getTypeChecker();
  return fileNames.flatMap((fileName) => {
    const file = program.getSourceFile(fileName);
    return (file ? declaredNames(file) : []).flatMap((name) => {
      const type = checker.getTypeAtLocation(name);
      const model = modelFile(checker, type);
      if (model === undefined || !file) return [];
      const line = file.getLineAndCharacterOfPosition(name.getStart()).line + 1;
      const typeText = checker.typeToString(type).slice(0, 60);
      return [
        `${path.relative(ROOT, fileName)}:${line}: ${name.text} has the type ${typeText} of ` +
          `${path.relative(ROOT, model)}: take a plain record, whose type is in domain/, instead`,
      ];
    });
  });
}

if (import.meta.main) {
  const found = findModels(globSync(path.join(ROOT, 'api/**/*.ts')));
  for (const line of found) process.stderr.write(`${line}\n`);
  if (found.length > 0) process.exitCode = 1;
}
