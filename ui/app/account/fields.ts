import type { Schemas } from '../api.ts';
import type { TokenForm } from './tokenForm.ts';

/** What is typed about a token, with the permissions that exist. */
export type Form = TokenForm<Schemas['Permission']>;

/** Whose token it is, in texts: the user's own, or that of another account. */
export type Owner = 'you' | 'it';

/** What the parts of the form share. */
export type FieldsProps = {
  owner: Owner;
  form: Form;
  change: (fields: Partial<Form>) => void;
  /** What the service says about a field of the request. */
  errorOf: (field: string) => string | undefined;
};

/** What can be done with a token of the list. */
export type TokenAction = 'narrow' | 'rotate' | 'revoke';
