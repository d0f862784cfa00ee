import { expect, test } from '@jest/globals';
import { createPasswords } from '../../../services/auth/passwords.ts';

test('a password is hashed as the OWASP Password Storage Cheat Sheet says', async () => {
  const { oneTimePassword, passwordHash } = await createPasswords().generate();
  expect(passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  // The hash says how it was made.
  const cheap = createPasswords({ memoryCost: 8, timeCost: 1, parallelism: 1 });
  expect(await cheap.verify(passwordHash, oneTimePassword)).toBe(true);
  expect(await cheap.hash(oneTimePassword)).toMatch(/^\$argon2id\$v=19\$m=8,t=1,p=1\$/);
});
