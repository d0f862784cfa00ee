import { invalidField } from './errors.ts';
import { MASK } from './mask.ts';

/** The secret that an update sets. Undefined if it keeps the present one: it sends none, or the mask. */
export const replacedSecret = (sent: string | undefined): string | undefined =>
  sent === MASK ? undefined : sent;

/** Error: `invalid_request` (`masked`) at `pointer` if the mask is sent as a new secret. */
export function assertNotMask(pointer: string, sent: unknown): void {
  if (sent === MASK) throw invalidField('body', pointer, 'masked', 'is the mask, not a secret');
}
