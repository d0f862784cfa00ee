/** Where something is or would be done; the narrowest id counts. */
export type Where = {
  tenantId?: string | undefined;
  siteId?: string | null | undefined;
  deviceId?: string | null | undefined;
  /** False where it may belong to sites and devices that are not known here: the service decides. */
  complete?: false | undefined;
};

const NAMES = ['tenantId', 'siteId', 'deviceId'] as const;

/** What several records have in common. */
export function commonWhere(all: readonly Where[]): Where {
  const [first = {}, ...others] = all;
  const isCommon = (name: (typeof NAMES)[number]) =>
    others.every((each) => each[name] === first[name]);
  const isKnown = NAMES.every(isCommon) && all.every(({ complete }) => complete !== false);
  return {
    ...Object.fromEntries(NAMES.map((name) => [name, isCommon(name) ? first[name] : undefined])),
    ...(!isKnown && { complete: false }),
  };
}

/**
 * Where a request for approval is made, of what the user may ask for: a change of what is at a site there, so that
 * those who approve at the site only may decide; anything else in the whole tenant first. Who may ask at one
 * site or device only, asks there where it is not known what a record belongs to.
 */
export function whereToAsk(
  { tenantId, siteId, deviceId, complete }: Where,
  type: 'change' | 'job',
  { mayAsk, held }: { mayAsk: (where: Where) => boolean; held: readonly Where[] },
): Where {
  const [only, ...others] = held;
  const atSite: Where[] = siteId == null ? [] : [{ tenantId, siteId }];
  const known: Where[] = [
    ...(type === 'change' ? [...atSite, { tenantId }] : [{ tenantId }, ...atSite]),
    ...(deviceId == null ? [] : [{ tenantId, deviceId }]),
    ...(complete === false && only && others.length === 0 ? [only] : []),
  ];
  return known.find(mayAsk) ?? { tenantId };
}
