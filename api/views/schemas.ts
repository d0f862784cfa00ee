import { Type, type Static } from 'typebox';
import { LIST_PATTERN, MAX_PARAMETERS, MAX_SEARCH_BYTES } from '../../domain/views/views.ts';
import { Actor, closed, Id, Name, NewName, Reference, Timestamp } from '../http/schemas.ts';

const ListPath = () =>
  Type.String({
    pattern: LIST_PATTERN,
    maxLength: 200,
    'x-rule': 'must be the path of a list of the console, such as /inventory/prefixes',
    description: 'The path of the page of the list.',
  });

const Search = Type.Record(
  Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,99}$' }),
  Type.String({ maxLength: 4_000 }),
  {
    title: 'ViewSearch',
    additionalProperties: false,
    maxProperties: MAX_PARAMETERS,
    description: `The search parameters of the page: filters, \`sort\`, \`columns\`. Up to ${MAX_SEARCH_BYTES} bytes as JSON.`,
  },
);

const shared = Type.Boolean({
  description: 'Readers of the list in the tenant see it. Otherwise only its owner does.',
});

export const ViewRecord = Type.Object(
  {
    id: Id('viw'),
    tenantId: Reference('tenants'),
    list: ListPath(),
    name: Name(),
    search: Search,
    shared,
    isOwn: Type.Boolean({ description: 'You have made it.' }),
    isDefault: Type.Boolean({ description: 'The list opens with it, for you.' }),
    createdBy: Actor(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'View', ...closed },
);
export type ViewRecord = Static<typeof ViewRecord>;

export const ViewRequest = Type.Object(
  {
    list: ListPath(),
    name: NewName({ maxLength: 100 }),
    search: Search,
    shared: Type.Boolean({ default: false }),
  },
  { title: 'ViewRequest', ...closed },
);

export const ViewChange = Type.Partial(
  Type.Object({ name: NewName({ maxLength: 100 }), search: Search, shared }, closed),
  { title: 'ViewChange', ...closed },
);
