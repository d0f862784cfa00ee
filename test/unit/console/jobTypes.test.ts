import { describe, expect, it } from '@jest/globals';
import { facetOf, listedTypes } from '../../../ui/areas/jobTypes/typeList.ts';
import {
  acceptedDefinition,
  candidateOf,
  definitionRows,
  typePath,
  whoMayRun,
  whyNotAccept,
  whyNotDisable,
} from '../../../ui/areas/jobTypes/typeText.ts';

const row = (name: string, more: object = {}) => ({
  name,
  summary: `Runs ${name}`,
  origin: 'runner' as const,
  state: 'accepted' as const,
  pools: ['ams'],
  ...more,
});

const TYPES = [
  row('net.audit'),
  row('core.echo', { origin: 'holdfast', pools: [] }),
  row('net.ping', { state: 'waiting', pools: ['fra'] }),
];

describe('the list of job types', () => {
  it('has those that wait first, and follows the filters of the address', () => {
    const names = (search: Record<string, string>) =>
      listedTypes(TYPES, search).map(({ name }) => name);
    expect(names({})).toEqual(['net.ping', 'core.echo', 'net.audit']);
    expect(names({ text: ' NET.' })).toEqual(['net.ping', 'net.audit']);
    expect(names({ origin: 'holdfast,runner', state: 'accepted' })).toEqual([
      'core.echo',
      'net.audit',
    ]);
    expect(names({ pools: 'fra' })).toEqual(['net.ping']);
  });

  it('counts the values of a filter among what passes the others', () => {
    const search = { state: 'waiting', text: 'net' };
    expect(facetOf(TYPES, 'state', search)?.values).toEqual([
      { value: 'accepted', count: 1 },
      { value: 'waiting', count: 1 },
    ]);
    expect(facetOf(TYPES, 'pools', search)?.values).toEqual([{ value: 'fra', count: 1 }]);
    expect(facetOf(TYPES, 'summary', {})).toBeNull();
  });
});

describe('a type of runners', () => {
  const version = (digest: string, accepted: boolean, definition: object = {}) => ({
    digest,
    accepted,
    definition: { ...definition },
  });
  const type = {
    state: 'accepted' as const,
    digest: 'one',
    acceptedAt: '2026-11-23T12:00:00.000Z',
    versions: [version('two', false, { access: 'open' }), version('one', true)],
  };

  it('offers its newest version for acceptance, unless that is accepted', () => {
    expect(candidateOf(type)?.digest).toBe('two');
    expect(whyNotAccept(type)).toBeUndefined();
    const accepted = { ...type, versions: [version('one', true)] };
    expect(candidateOf(accepted)).toBeUndefined();
    expect(whyNotAccept(accepted)).toBe('The newest version is accepted.');
    expect(candidateOf({ ...accepted, state: 'disabled' })?.digest).toBe('one');
    expect(whyNotAccept({ ...type, versions: [] })).toContain('No runner');
  });

  it('is compared with what was accepted, field by field', () => {
    expect(acceptedDefinition(type)).toEqual({});
    expect(acceptedDefinition({ ...type, acceptedAt: null })).toBeUndefined();
    const rows = definitionRows(
      { name: 'a.b', access: 'granted' },
      { name: 'a.b', access: 'open' },
    );
    expect(rows).toContainEqual({
      field: 'access',
      label: 'Access',
      before: 'granted',
      after: 'open',
    });
    expect(rows.some(({ field }) => field === 'name')).toBe(false);
    // A field that the console does not know is shown, too.
    expect(definitionRows({}, { later: 1 }).some(({ field }) => field === 'later')).toBe(true);
  });

  it('says who may run it, and why it cannot be disabled', () => {
    expect(whoMayRun({ createdOnlyBy: null, access: 'granted' })).toBe('Roles that name it');
    expect(whoMayRun({ createdOnlyBy: 'POST /x', access: 'open' })).toBe('Only POST /x');
    expect(whyNotDisable({ state: 'waiting' })).toContain('never accepted');
    expect(whyNotDisable({ state: 'accepted' })).toBeUndefined();
    expect(typePath('net.audit')).toBe('/job-types/net.audit');
  });
});
