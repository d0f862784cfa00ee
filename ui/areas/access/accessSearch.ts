import type { SearchText } from '../../app/search.ts';

/** Keeps these parameters of an address, which are texts. */
export const validateTexts =
  <Name extends string>(...names: readonly Name[]) =>
  (search: SearchText): Partial<Record<Name, string | undefined>> =>
    Object.fromEntries(
      names.map((name) => [name, search[name] === '' ? undefined : search[name]]),
    ) as Partial<Record<Name, string | undefined>>;
