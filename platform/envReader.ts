import { readFileSync } from 'node:fs';
import { errorMessage } from '../domain/shared/errorMessage.ts';
import type { readNetwork } from './network.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** Reads variables, and collects a problem for each invalid one instead of throwing. */
export function createEnvReader(env: Env) {
  const problems: string[] = [];
  const known = new Set<string>();
  const raw = (name: string) => {
    known.add(name);
    const value = env[name]?.trim();
    return value === '' ? undefined : value;
  };
  /** Variables of these that were not read: names that were misspelt. Roles may share one file of variables. */
  const unknownVariables = (own: RegExp) =>
    Object.keys(env).filter((name) => own.test(name) && !known.has(name));
  const addProblem = (name: string, what: string) => void problems.push(`${name}: ${what}`);
  const texts = (name: string): string[] =>
    (raw(name) ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  function url(name: string, requirement: string, mayHavePath: boolean): string | undefined {
    const value = raw(name);
    if (value === undefined) return undefined;
    const url = URL.parse(value);
    const plain = `${url?.origin}${mayHavePath ? url?.pathname : '/'}`;
    // The value may contain a password, so the message does not show it.
    if (!url || !/^https?:$/.test(url.protocol) || url.href !== plain)
      addProblem(name, requirement);
    return url?.href.replace(/\/+$/, '');
  }
  return {
    problems,
    unknownVariables,
    addProblem,
    text: (name: string) => raw(name),
    required(name: string) {
      const value = raw(name);
      if (value === undefined) addProblem(name, 'is required');
      return value ?? '';
    },
    integer(name: string, fallback: number, [min, max]: readonly [number, number]) {
      const value = raw(name);
      if (value === undefined) return fallback;
      const number = Number(value);
      if (Number.isInteger(number) && number >= min && number <= max) return number;
      addProblem(name, `must be a whole number from ${min} to ${max}, not "${value}"`);
      return fallback;
    },
    oneOf<T extends string>(name: string, allowed: readonly T[], fallback: T) {
      const value = raw(name);
      const found = allowed.find((each) => each === value);
      if (value !== undefined && found === undefined)
        addProblem(name, `must be one of ${allowed.join(', ')}, not "${value}"`);
      return found ?? fallback;
    },
    flag(name: string, fallback: boolean) {
      const value = raw(name);
      if (value === undefined) return fallback;
      if (value === 'true' || value === '1') return true;
      if (value !== 'false' && value !== '0')
        addProblem(name, `must be true or false, not "${value}"`);
      return false;
    },
    /** Texts, separated by commas. */
    texts,
    networks: (name: string, parse: typeof readNetwork) =>
      texts(name).flatMap((part) => {
        const parsed = parse(part);
        if ('network' in parsed) return [parsed.network];
        addProblem(name, `"${part}" ${parsed.problem}`);
        return [];
      }),
    /** An http or https URL without user name, query and fragment, as text without a slash at its end. */
    url: (name: string, requirement: string) => url(name, requirement, true),
    /** Such a URL without a path. */
    origin: (name: string, example: string) =>
      url(name, `must be an http or https origin without a path, such as ${example}`, false),
    file(name: string) {
      const path = raw(name);
      if (path === undefined) return undefined;
      try {
        return readFileSync(path);
      } catch (error) {
        addProblem(name, `cannot read the file (${errorMessage(error)})`);
        return undefined;
      }
    },
  };
}

export type EnvReader = ReturnType<typeof createEnvReader>;
