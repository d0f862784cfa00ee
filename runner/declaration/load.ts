import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { RemoteTypeDefinition } from '../../domain/runners/definition.ts';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import { DigestError, digestOf } from './digest.ts';
import {
  DeclarationError,
  definitionOf,
  MAX_FILE_BYTES,
  readDeclaration,
} from './readDeclaration.ts';
import type { Declaration } from './schema.ts';

/** A declaration with its file and its code as they are on the disk. */
export type DeclaredType = {
  file: string;
  /** The folder of the file: paths of the declaration are relative to it. */
  folder: string;
  declaration: Declaration;
  definition: RemoteTypeDefinition;
  digest: string;
  /** What the file says. */
  text: string;
};

/** A file that cannot be used, and why. */
export type Refusal = { file: string; problems: readonly string[] };

/** At most this many files of a folder are read. */
const MAX_FILES = 1_000;

/**
 * Reads one declaration. If the file says what it said when `known` was read, it is not checked again: that
 * takes longer than everything else. Error: `DeclarationError`.
 */
export async function loadDeclaration(file: string, known?: DeclaredType): Promise<DeclaredType> {
  const absolute = path.resolve(file);
  const folder = path.dirname(absolute);
  try {
    const text = await readBounded(absolute);
    if (known?.file === absolute && known.text === text)
      return { ...known, digest: await digestOf(folder, known.declaration) };
    const declaration = readDeclaration(absolute, text);
    return {
      file: absolute,
      folder,
      declaration,
      definition: definitionOf(declaration),
      digest: await digestOf(folder, declaration),
      text,
    };
  } catch (error) {
    if (error instanceof DeclarationError) throw error;
    if (error instanceof DigestError) throw new DeclarationError([`${absolute}: ${error.message}`]);
    const reason = errorMessage(error);
    throw new DeclarationError([`${absolute}: cannot be read (${reason})`]);
  }
}

/** The text of a file, of which at most one byte too many is read. */
async function readBounded(file: string): Promise<string> {
  const handle = await open(file, 'r');
  try {
    const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
    let size = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, size, buffer.length - size);
      size += bytesRead;
      if (bytesRead === 0 || size === buffer.length) break;
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, size));
  } finally {
    await handle.close();
  }
}

/**
 * Reads the declarations (`*.yaml`, `*.yml`) of folders, without their subfolders. A folder that does not
 * exist has none. If two files declare the same name, the first one counts. Those in `known` that have
 * not changed are not checked again.
 */
export async function loadFolders(
  folders: readonly string[],
  known: readonly DeclaredType[] = [],
): Promise<{ types: DeclaredType[]; refusals: Refusal[] }> {
  const types = new Map<string, DeclaredType>();
  const knownByFile = new Map(known.map((type) => [type.file, type]));
  const refusals: Refusal[] = [];
  for (const file of (await Promise.all(folders.map(filesOf))).flat()) {
    try {
      const loaded = await loadDeclaration(file, knownByFile.get(file));
      const { name } = loaded.definition;
      const other = types.get(name);
      if (other)
        refusals.push({ file, problems: [`${file}: ${other.file} declares ${name}, too`] });
      else types.set(name, loaded);
    } catch (error) {
      if (!(error instanceof DeclarationError)) throw error;
      refusals.push({ file, problems: error.problems });
    }
  }
  return { types: [...types.values()], refusals };
}

async function filesOf(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  return names
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .slice(0, MAX_FILES)
    .map((name) => path.resolve(folder, name));
}
