import ipaddr from 'ipaddr.js';
import { readFileSync } from 'node:fs';
import { parseAllowedNetwork } from './addressGuard.ts';

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
  const list = (name: string, isValid: (part: string) => boolean, what: string) => {
    const parts = (raw(name) ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
    for (const part of parts) if (!isValid(part)) addProblem(name, `"${part}" is not ${what}`);
    return parts;
  };
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
    texts: (name: string) => list(name, () => true, 'a text'),
    cidrs: (name: string) =>
      list(name, (part) => ipaddr.isValidCIDR(part), 'a CIDR such as 10.0.0.0/8 or ::1/128'),
    /** CIDRs, each optionally with the allowed ports. */
    networks: (name: string) =>
      list(
        name,
        (part) => parseAllowedNetwork(part) !== undefined,
        'a CIDR such as 10.0.0.0/8, or a CIDR with ports such as 127.0.0.1/32:9000-9099 or [::1/128]:9000',
      ),
    file(name: string) {
      const path = raw(name);
      if (path === undefined) return undefined;
      try {
        return readFileSync(path);
      } catch (error) {
        addProblem(
          name,
          `cannot read the file (${error instanceof Error ? error.message : String(error)})`,
        );
        return undefined;
      }
    },
  };
}

export type EnvReader = ReturnType<typeof createEnvReader>;
