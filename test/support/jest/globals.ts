/** What `@jest/globals` means in a test; see `setup.ts`. */
const api = globalThis as unknown as typeof import('@jest/globals');

export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test } = api;
