/** What PostgreSQL accepts, who is connected, and what the installation is made of. */
export type ConnectionFacts = {
  maxConnections: number;
  /** Those that PostgreSQL keeps for superusers and for `pg_use_reserved_connections`. */
  reserved: number;
  /** Limits of the role and of the database of Holdfast; null without one. */
  ownLimit: number | null;
  /** The pools of the other processes that are connected. */
  otherPools: readonly number[];
  /** Connections of everyone else. */
  othersConnected: number;
};

export type ConnectionSettings = {
  poolSize: number;
  /** How many processes there are altogether, as the operator has said; 0: not said. */
  processes: number;
  /** What Temporal, administration, monitoring and backups need, at least. */
  otherConnections: number;
};

export type ConnectionBudget = {
  /** `fits`; `short`: it may run out of connections; `impossible`: Holdfast alone exceeds the limit. */
  result: 'fits' | 'short' | 'impossible';
  processes: number;
  /** What the processes of Holdfast may open. */
  own: number;
  others: number;
  needed: number;
  usable: number;
};

/** A process has its pool, and one connection that listens for notifications. */
const connectionsOf = (poolSize: number): number => poolSize + 1;

/** Computes what an installation may open, against what PostgreSQL accepts. */
export function connectionBudget(
  facts: ConnectionFacts,
  { poolSize, processes: declared, otherConnections }: ConnectionSettings,
): ConnectionBudget {
  const pools = [poolSize, ...facts.otherPools];
  const connected = pools.reduce((sum, size) => sum + connectionsOf(size), 0);
  // Processes that are not connected yet are taken to be like this one.
  const missing = Math.max(declared - pools.length, 0);
  const own = connected + missing * connectionsOf(poolSize);
  const others = Math.max(facts.othersConnected, otherConnections);
  const usable = facts.maxConnections - facts.reserved;
  const ownUsable = Math.min(usable, facts.ownLimit ?? usable);
  // What is connected now may be the end of a rolling restart; what was declared stays.
  const certain = Math.max(declared, 1) * connectionsOf(poolSize);
  const isShort = own > ownUsable || own + others > usable;
  return {
    result: certain > ownUsable ? 'impossible' : isShort ? 'short' : 'fits',
    processes: pools.length + missing,
    own,
    others,
    needed: own + others,
    usable,
  };
}
