/** An event as it is stored; `sequence` is null until it is published. */
export type StoredEvent = {
  id: string;
  sequence: number | null;
  type: string;
  tenantId: string;
  subjectType: string;
  subjectId: string;
  actorId: string;
  data: Record<string, unknown>;
  createdAt: Date;
};

export type PublishedEvent = StoredEvent & { sequence: number };
