/** A JSON Schema that someone wrote, of any form. */
export type Schema = Record<string, unknown>;
