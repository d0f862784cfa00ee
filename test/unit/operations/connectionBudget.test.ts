import { describe, expect, test } from '@jest/globals';
import { connectionBudget } from '../../../domain/shared/connectionBudget.ts';

const facts = {
  maxConnections: 100,
  reserved: 3,
  ownLimit: null,
  otherPools: [20, 20, 20],
  othersConnected: 49,
};
const settings = { poolSize: 20, processes: 0, otherConnections: 10 };

describe('the budget of database connections', () => {
  test('of two APIs, two workers and Temporal is more than 100 connections', () => {
    expect(connectionBudget(facts, settings)).toEqual({
      result: 'short',
      processes: 4,
      own: 84,
      others: 49,
      needed: 133,
      usable: 97,
    });
    expect(connectionBudget({ ...facts, maxConnections: 300 }, settings).result).toBe('fits');
  });

  test('counts processes that were declared and are not connected yet', () => {
    const alone = { ...facts, otherPools: [], othersConnected: 0 };
    expect(connectionBudget(alone, settings)).toMatchObject({ processes: 1, own: 21, others: 10 });
    expect(connectionBudget(alone, { ...settings, processes: 4 })).toMatchObject({
      result: 'fits',
      processes: 4,
      needed: 94,
    });
    expect(connectionBudget(facts, { ...settings, processes: 2 }).processes).toBe(4);
  });

  test('is impossible if the declared processes alone exceed what PostgreSQL accepts', () => {
    expect(connectionBudget(facts, { ...settings, processes: 5 }).result).toBe('impossible');
    expect(connectionBudget(facts, { ...settings, poolSize: 97 }).result).toBe('impossible');
    // What is connected now may be the end of a rolling restart.
    const restarting = { ...facts, otherPools: [20, 20, 20, 20, 20] };
    expect(connectionBudget(restarting, settings).result).toBe('short');
  });

  test('knows the limits of the role and of the database', () => {
    expect(connectionBudget({ ...facts, ownLimit: 20 }, settings).result).toBe('impossible');
    const wide = { ...facts, maxConnections: 300, ownLimit: 60 };
    expect(connectionBudget(wide, settings).result).toBe('short');
  });
});
