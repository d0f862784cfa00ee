import { expect, test } from '@jest/globals';
import { knownNamesOf } from '../../../db/approvals/names.ts';
import { findRepeatedNames } from '../../../db/auth/repeatedNames.ts';
import type { Knex } from '../../../db/core/knex.ts';
import {
  isSamePerson,
  namesMeaning,
  normalizeName,
  recordedNames,
} from '../../../domain/approvals/names.ts';
import { withDatabase } from '../../support/database.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

const TENANT = 'acme';

/** True when an actor who has requested something is known when another name of theirs decides. */
async function isKnown(requester: string, decider: string): Promise<boolean> {
  const actors = [requester, decider].map((actorId) => ({ actorId, tenantId: TENANT }));
  const namesFor = await knownNamesOf(db, actors);
  const [requested, deciding] = actors.map(namesFor);
  return isSamePerson(recordedNames(requested ?? [], TENANT), namesMeaning(deciding ?? []));
}

test.each([
  ['plain letters', 'Ann.Lee', 'Ann.Lee@example.com'],
  ['letters beyond ASCII', 'Åsa.Öberg', 'Åsa.Öberg@example.com'],
  ['a decomposed letter', 'Rene\u0301', 'rene\u0301@example.com'],
  ['a ligature', '\ufb01nn', '\ufb01nn@example.com'],
  ['a capital that has two small characters', 'İlker', 'İlker@example.com'],
  ['wide letters', 'Ｂｏｂ', 'Ｂｏｂ@example.com'],
  ['a name with a space before it', '\u3000ida', ' ida@example.com'],
])('an account with %s is one person under all its names', async (_what, username, email) => {
  const id = `usr_${Buffer.from(username).toString('hex')}`;
  const at = new Date();
  await db('users').insert({
    id,
    provider_id: 'prv_names',
    external_id: `${username}-7`,
    external_groups: [],
    username,
    display_name: '',
    email,
    tenant_id: TENANT,
    enabled: true,
    must_change_password: false,
    created_at: at,
    updated_at: at,
    version: 1,
  });
  const names = [username, email, `${username}-7`].flatMap((name) => [
    name,
    name.toLowerCase(),
    name.toUpperCase().toLowerCase(),
    name.normalize('NFKD'),
    normalizeName(name),
  ]);
  for (const name of names)
    for (const other of [id, email]) {
      expect([name, other, await isKnown(name, other)]).toEqual([name, other, true]);
      expect([name, other, await isKnown(other, name)]).toEqual([name, other, true]);
    }
  expect(await isKnown(username, 'another')).toBe(false);
});

test('who has had control of a service account is known by names of before they were normalized', async () => {
  const row = { account_id: 'usr_robot', tenant_id: TENANT, since: new Date() };
  // `lower` of a database with the locale C has left the capital.
  await db('account_controllers').insert({ ...row, name: '\u00d6zil' });
  expect(await isKnown('usr_robot', '\u00f6zil')).toBe(true);
  expect(await isKnown('usr_robot', 'ozil')).toBe(false);
});

test('records whose names have become one are found, and no others', async () => {
  const user = {
    external_groups: [],
    display_name: '',
    enabled: true,
    must_change_password: false,
  };
  const at = new Date();
  const rows = [
    ['usr_1', 'local', '\ufb01nn', 'platform'],
    ['usr_2', 'local', 'Finn', 'platform'],
    ['usr_3', 'service', 'finn', 'red'],
    ['usr_4', 'service', '\u00c5sa', 'red'],
    ['usr_5', 'service', '\u00e5sa', 'red'],
    ['usr_6', 'service', '\u00e5sa', 'blue'],
    ['usr_7', 'prv_names', 'FINN', 'red'],
  ].map(([id, provider_id, username, tenant_id]) => ({
    ...{ ...user, id, provider_id, username, tenant_id, version: 1 },
    ...{ external_id: provider_id === 'local' ? null : id, created_at: at, updated_at: at },
  }));
  await db('users').insert(rows);
  expect(await findRepeatedNames(db, 9)).toEqual([
    { what: 'local accounts', records: ['\ufb01nn (usr_1)', 'Finn (usr_2)'] },
    { what: 'service accounts of red', records: ['\u00c5sa (usr_4)', '\u00e5sa (usr_5)'] },
  ]);
});

// Letters that are newer than the Unicode version of the server are left out: it does not normalize them.
test('the database compares every letter as the product does', async () => {
  const letters = Array.from({ length: 0x20000 }, (_, code) => code)
    .filter((code) => code > 0 && (code < 0xd800 || code > 0xdfff))
    .map((code) => String.fromCodePoint(code))
    .filter((letter) => normalizeName(letter) !== letter);
  const { rows } = await db.raw<{ rows: { letter: string }[] }>(
    `SELECT letter FROM unnest(?::text[], ?::text[], ?::text[]) AS l (letter, normalized, composed)
     WHERE known_name(letter) <> known_name(normalized) AND normalize(letter, NFKC) = composed`,
    [letters, letters.map(normalizeName), letters.map((letter) => letter.normalize('NFKC'))],
  );
  expect(rows).toEqual([]);
  expect(letters.length).toBeGreaterThan(2_000);
});
