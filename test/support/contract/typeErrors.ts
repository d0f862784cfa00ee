import path from 'node:path';
import ts from 'typescript';

const OPTIONS: ts.CompilerOptions = {
  noEmit: true,
  strict: true,
  skipLibCheck: true,
  skipDefaultLibCheck: true,
  types: [],
  // openapi-fetch needs the types of `fetch`.
  lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  allowImportingTsExtensions: true,
};

/** Parsed once: the libraries of the language, and files that do not change. */
const parsed = new Map<string, ts.SourceFile>();

/** Compiles a program whose files exist in memory only, and returns its errors. */
export function typeErrors(files: Readonly<Record<string, string>>): string[] {
  const folder = import.meta.dirname;
  const texts = new Map(
    Object.entries(files).map(([name, text]) => [path.join(folder, name), text]),
  );
  const host = ts.createCompilerHost(OPTIONS);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => texts.has(name) || fileExists(name);
  host.readFile = (name) => texts.get(name) ?? readFile(name);
  host.getSourceFile = (name, ...rest) => {
    const text = texts.get(name);
    const known = parsed.get(name);
    if (known && (text === undefined || text === known.text)) return known;
    const file =
      text === undefined
        ? getSourceFile(name, ...rest)
        : ts.createSourceFile(name, text, OPTIONS.target ?? ts.ScriptTarget.ES2022);
    if (file) parsed.set(name, file);
    return file;
  };
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const message = ts.flattenDiagnosticMessageText(messageText, ' ');
    return file ? `${path.basename(file.fileName)}: ${message}` : message;
  });
}
