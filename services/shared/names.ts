import type { Knex } from '../../db/core/knex.ts';
import { accountNames, labelsOf, readNames, type NameSource } from '../../db/core/names.ts';
import { recordLabels } from '../../db/inventory/labels.ts';
import { RBAC_READERS, type Permission } from '../../domain/access/permissions.ts';
import { BUILT_IN_ROLES } from '../../domain/access/roles.ts';
import {
  covers,
  isEmpty,
  PLATFORM,
  type ResourceScope,
  type Scope,
} from '../../domain/access/scope.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isResourceName } from '../../domain/inventory/names.ts';
import { BUILT_IN_ACTORS } from '../../domain/shared/builtInActors.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { LabelKind, NamedIds, Names, OtherLabelKind } from '../../domain/shared/labels.ts';

type Deps = {
  db: Knex;
  access: { scope(caller: Caller, ...permissions: readonly Permission[]): Scope };
};

/** What reading records outside the inventory needs, and where; in its own scope without `at`. */
const READ: Readonly<
  Record<OtherLabelKind, { permissions: readonly Permission[]; at?: ResourceScope }>
> = {
  jobs: { permissions: ['job:read'] },
  schedules: { permissions: ['schedule:read'] },
  workflows: { permissions: ['workflow:read'] },
  webhooks: { permissions: ['webhook:read'] },
  backups: { permissions: ['backup:read'] },
  providers: { permissions: ['auth:read'], at: { tenantId: PLATFORM } },
  roles: { permissions: RBAC_READERS },
};

/**
 * Finds the names that readers see beside ids. A record has a label for callers who may read it.
 * People have display names, nothing else: who did something, for all who may read what was done;
 * other accounts, for callers who may read them.
 */
export function createFindNames({ db, access }: Deps) {
  function labelSource(
    caller: Caller,
    kind: LabelKind,
    ids: ReadonlySet<string>,
  ): NameSource | undefined {
    if (isResourceName(kind)) {
      const scope = access.scope(caller, 'inventory:read');
      return isEmpty(scope) ? undefined : recordLabels(RESOURCES[kind], scope, ids);
    }
    const { permissions, at } = READ[kind];
    const scope = access.scope(caller, ...permissions);
    return isEmpty(scope) || (at && !covers(scope, at)) ? undefined : labelsOf(kind, scope, ids);
  }

  /** One statement, or none if nothing is named. */
  return async (caller: Caller, { records, actors, accounts }: NamedIds): Promise<Names> => {
    const sources = [...records].flatMap(([kind, ids]) => labelSource(caller, kind, ids) ?? []);
    const userIds = [...actors, ...accounts].filter((id) => id.startsWith('usr_'));
    if (userIds.length > 0) sources.push(accountNames(new Set(userIds)));
    const found = await readNames(db, sources);

    const users = access.scope(caller, 'user:read');
    const labels = new Map<string, [string, string][]>();
    const people: [string, { displayName: string }][] = [...actors].flatMap((id) => {
      const displayName = BUILT_IN_ACTORS.get(id);
      return displayName === undefined ? [] : [[id, { displayName }]];
    });
    for (const { kind, id, label, tenantId } of found) {
      if (tenantId === null) labels.set(kind, [...(labels.get(kind) ?? []), [id, label]]);
      else if (actors.has(id) || covers(users, { tenantId }))
        people.push([id, { displayName: label }]);
    }
    const roles = sources.some(({ kind }) => kind === 'roles') ? records.get('roles') : undefined;
    for (const id of roles ?? []) {
      const role = BUILT_IN_ROLES.get(id);
      if (role) labels.set('roles', [...(labels.get('roles') ?? []), [id, role.name]]);
    }
    return {
      labels: inOrder([...labels].map(([kind, named]) => [kind, inOrder(named)])),
      people: inOrder(people),
    };
  };
}

/** An object with its keys in order, so that equal names have equal texts. */
const inOrder = <T>(entries: [string, T][]): Record<string, T> =>
  Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1)));
