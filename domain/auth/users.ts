/** A user, without the password hash. */
export type UserDetails = {
  id: string;
  username: string;
  displayName: string;
  email: string | null;
  /** `local`, or the id of the identity provider. */
  providerId: string;
  /** Groups at the identity provider, as of the last login. */
  externalGroups: string[];
  tenantId: string;
  enabled: boolean;
  mustChangePassword: boolean;
  /** See `passwordEndOf`. */
  passwordExpiresAt: Date | null;
  lastLoginAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

/** An account of a program. Its user name is its name. */
export type ServiceAccountDetails = Pick<
  UserDetails,
  'id' | 'username' | 'displayName' | 'tenantId' | 'enabled' | 'createdAt' | 'updatedAt' | 'version'
> & {
  /** The person who is responsible for it. */
  ownerId: string | null;
};

/** A session of a user, without its tokens. */
export type SessionDetails = {
  id: string;
  userId: string;
  /** The tenant that new records of the session belong to. */
  tenantId: string;
  address: string | null;
  userAgent: string | null;
  createdAt: Date;
  refreshedAt: Date;
  idleExpiresAt: Date;
  absoluteExpiresAt: Date;
};
