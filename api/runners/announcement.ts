import type { Static } from 'typebox';
import { MAX_ANNOUNCED_TYPES, MAX_DEFINITION_BYTES } from '../../domain/runners/definition.ts';
import type { AnnouncedState, AnnouncedType } from '../../domain/runners/protocol.ts';
import { invalidFields } from '../../domain/shared/errors.ts';
import { compileCheck } from '../../platform/schemaCheck.ts';
import { once } from '../../platform/once.ts';
import { AnnounceRequest, UncheckedAnnouncement } from './schemas.ts';

/** The largest announcement: each type may have a definition of the largest size. */
export const MAX_ANNOUNCEMENT_BYTES = MAX_ANNOUNCED_TYPES * (MAX_DEFINITION_BYTES + 1_024);

const MAX_REASON_CHARS = 300;

const checkAnnouncement = once(() => compileCheck(UncheckedAnnouncement));
const checkType = once(() => compileCheck(AnnounceRequest.properties.types.items));

/** A text of what may be anything. */
function textIn(value: unknown, field: string): string {
  const found = (value as Record<string, unknown> | null | undefined)?.[field];
  return typeof found === 'string' ? found : '';
}

/** Why a type of an announcement cannot be announced; undefined if it can. It gets its defaults. */
function refusal(type: unknown, position: number): string | undefined {
  if (position >= MAX_ANNOUNCED_TYPES)
    return `A runner announces ${MAX_ANNOUNCED_TYPES} types of a pool at most.`;
  const errors = checkType()(type);
  if (errors.length === 0) return undefined;
  const list = errors.map(({ pointer, message }) => `${pointer} ${message}`.trim()).join('; ');
  return `The type is not valid: ${list}`.slice(0, MAX_REASON_CHARS);
}

/**
 * An announcement without the types that cannot be announced, and these as they are answered: one of them
 * must not keep the others from being announced. Error: `invalid_request` for the rest of the body.
 */
export function checkedAnnouncement(body: unknown): {
  announcement: Static<typeof AnnounceRequest>;
  refused: AnnouncedState[];
} {
  const errors = checkAnnouncement()(body);
  if (errors.length > 0) throw invalidFields(errors.map((error) => ({ in: 'body', ...error })));
  const announcement = body as Static<typeof UncheckedAnnouncement>;
  const types: AnnouncedType[] = [];
  const refused: AnnouncedState[] = [];
  for (const [position, type] of announcement.types.entries()) {
    const reason = refusal(type, position);
    if (reason === undefined) {
      types.push(type as AnnouncedType);
      continue;
    }
    const { definition } = (type ?? {}) as { definition?: unknown };
    const named = { name: textIn(definition, 'name'), digest: textIn(type, 'digest') };
    refused.push({ ...named, state: 'refused', reason });
  }
  return { announcement: { ...announcement, types }, refused };
}
