import { labelOfField } from '../parts/format.ts';
import { ownValue } from '../parts/ownValue.ts';

type Type = { type: string; summary: string };
export type TypeGroup<Each extends Type = Type> = {
  name: string;
  label: string;
  types: readonly Each[];
};

/** `inventory` of `inventory.device.created`. */
const areaOf = (type: string): string => type.slice(0, type.indexOf('.'));

/** Names of areas that are not what their records are called. */
const LABELS: Readonly<Record<string, string>> = {
  auth: 'Users and providers',
  rbac: 'Roles',
  workflow: 'Approval requests',
};

/** Event types by what they are about, in the order of their names. */
export const groupTypes = <Each extends Type>(types: readonly Each[]): TypeGroup<Each>[] =>
  [...Map.groupBy(types, ({ type }) => areaOf(type))].map(([name, own]) => ({
    name,
    label: ownValue(LABELS, name) ?? labelOfField(name),
    types: own,
  }));

/** The choice with or without some types, in the order of their names. */
export const withTypes = (
  chosen: readonly string[],
  types: readonly string[],
  isOn: boolean,
): string[] => {
  const others = chosen.filter((type) => !types.includes(type));
  return isOn ? [...others, ...types].sort() : others;
};
