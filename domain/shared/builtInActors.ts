import { invalidFields, type FieldError, type FieldLocation } from './errors.ts';

/** The ids of actors that are no people, and the names under which readers see them. */
export const BUILT_IN_ACTORS: ReadonlyMap<string, string> = new Map([
  ['system', 'Holdfast'],
  ['anonymous', 'Anonymous'],
  ['other-tenant', 'Another tenant'],
]);

/** Equal for texts that readers would confuse: case, width, spaces and invisible characters do not count. */
const folded = (text: string): string =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Cf}/gu, '')
    .replaceAll(/\s+/gu, ' ')
    .trim()
    .toLowerCase();

const RESERVED: ReadonlySet<string> = new Set([...BUILT_IN_ACTORS].flat().map(folded));

/** True for a name under which a person would appear as Holdfast itself. */
export const isBuiltInName = (name: string): boolean => RESERVED.has(folded(name));

/** The errors of names of people, by their pointers, that are those of built-in actors. */
export const builtInNames = (
  location: FieldLocation,
  names: Readonly<Record<string, string | undefined>>,
): FieldError[] =>
  Object.entries(names)
    .filter(([, name]) => name !== undefined && isBuiltInName(name))
    .map(([pointer]) => ({
      in: location,
      pointer,
      code: 'reserved',
      message: 'must not be a name of Holdfast itself, such as system',
    }));

/** Error: `invalid_request` if one of the names is that of a built-in actor. */
export function refuseBuiltInNames(...input: Parameters<typeof builtInNames>): void {
  const errors = builtInNames(...input);
  if (errors.length > 0) throw invalidFields(errors);
}
