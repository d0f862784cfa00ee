import { labelOfField } from '../format.ts';

/** What jobs of types with targets are about. */
export type TargetKind = 'site' | 'device';

/** As the API has it in jobs and schedules. */
export type Target = { kind: TargetKind; id: string };

/** What the record that a job is about is called. */
export const targetLabel = (kind: TargetKind): string => labelOfField(kind);

/** The kind of record that jobs of a type are about; undefined for those about none. */
export const targetKindOf = ({
  targets,
}: {
  targets: TargetKind | 'none';
}): TargetKind | undefined => (targets === 'none' ? undefined : targets);

/** The body of a request that names the target; nothing while none is chosen. */
export const targetRequest = (
  kind: TargetKind | undefined,
  id: string | undefined,
): Target | undefined => (kind === undefined || id === undefined ? undefined : { kind, id });
