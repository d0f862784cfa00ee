/** Where something is or would be done; the narrowest id counts. */
export type Where = {
  tenantId?: string | undefined;
  siteId?: string | null | undefined;
  deviceId?: string | null | undefined;
  /** False where it may belong to sites and devices that are not known here: the service decides. */
  complete?: false | undefined;
};

/** What several records have in common. */
export function commonWhere(all: readonly Where[]): Where {
  const [first = {}, ...others] = all;
  const common = <Name extends 'tenantId' | 'siteId' | 'deviceId'>(name: Name): Where[Name] =>
    others.every((each) => each[name] === first[name]) ? first[name] : undefined;
  return {
    ...{ tenantId: common('tenantId'), siteId: common('siteId'), deviceId: common('deviceId') },
    complete: false,
  };
}

/**
 * Where a request for approval is made: at the widest of these where the user may ask, since a change
 * must be inside the scope of its request. Who may ask at one site or device only, asks there where it
 * is not known what a record belongs to.
 */
export function whereToAsk(
  { tenantId, siteId, deviceId, complete }: Where,
  mayAsk: (where: Where) => boolean,
  held: readonly Where[],
): Where {
  const [only, ...others] = held;
  const known: Where[] = [
    { tenantId },
    ...(siteId == null ? [] : [{ tenantId, siteId }]),
    ...(deviceId == null ? [] : [{ tenantId, deviceId }]),
    ...(complete === false && only && others.length === 0 ? [only] : []),
  ];
  return known.find(mayAsk) ?? { tenantId };
}
