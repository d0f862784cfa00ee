import { describe, expect, test } from '@jest/globals';
import { readMutations } from '../../../api/inventory/mutations.ts';
import { AppError } from '../../../domain/shared/errors.ts';

const MUTATION = { resource: 'sites', operation: 'create', record: { name: 'a' } };

/** What is read of a request, or the pointer and the code of each error. */
function read(request: unknown, pointer = ''): unknown {
  try {
    return readMutations(request, pointer);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.extra.errors?.map((each) => [each.pointer, each.code]);
  }
}

describe('an unknown field of a mutation', () => {
  test.each<[object, string[]]>([
    [{ ...MUTATION, version: 3 }, ['/version']],
    [{ ...MUTATION, version: 3, odd: null }, ['/version', '/odd']],
    [{ mutations: [{ ...MUTATION, version: 3 }] }, ['/mutations/0/version']],
    [{ mutations: [MUTATION, { ...MUTATION, 'a/b': null }] }, ['/mutations/1/a~1b']],
    [{ mutations: [{ v: 1 }, 7, null, [1], { w: 1 }] }, ['/mutations/0/v', '/mutations/4/w']],
  ])('of %j is refused where it is', (request, pointers) => {
    for (const base of ['', '/validationRequest'])
      expect(read(request, base)).toEqual(
        pointers.map((pointer) => [`${base}${pointer}`, 'unknown_field']),
      );
  });
});

test('null in a field of the other form is not given', () => {
  const one = { mutations: [MUTATION], isBatch: false };
  expect(read({ ...MUTATION, mutations: null })).toEqual(one);
  const others = { resource: null, operation: null, record: null };
  expect(read({ ...others, mutations: [MUTATION] })).toEqual({ ...one, isBatch: true });
  expect(read({ mutations: [MUTATION], resource: 'sites' })).toEqual([['', 'one_of']]);
  expect(read({ mutations: [MUTATION], odd: null })).toEqual([['/odd', 'unknown_field']]);
});
