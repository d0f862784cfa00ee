/** Advice about a request that was accepted. `pointer` is the field in the request body. */
export type Warning = { code: string; pointer: string; message: string };
