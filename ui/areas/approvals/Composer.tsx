import { Button, Textarea } from '@mantine/core';
import { useBlocker } from '@tanstack/react-router';
import { useRef, useState, useSyncExternalStore } from 'react';
import { useShortcuts } from '../../app/shortcuts.ts';
import { useSession } from '../../app/session/useSession.ts';
import { Actor } from '../../parts/Actor.tsx';
import { exactText } from '../../parts/exact.ts';
import { formatCount, formatNumberOf } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import type { Names } from '../../parts/names.ts';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { useUnsaved } from '../../parts/form/unsaved.ts';
import { RefusedNote } from '../../parts/RefusedNote.tsx';
import { APPLIES_CHANGE, notShownText } from '../../parts/plan/effects.ts';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import { mayComment, reasonText, stateOf } from '../../parts/approvals/states.ts';
import { isOvertaken } from './queries.ts';
import { useActions, type Verb } from './useActions.ts';
import classes from './Composer.module.css';

const MAX_COMMENT = 2_000;

/** What the button that approves does, in a few words. */
function approveLabel({
  requiredApprovals,
  approvals,
  jobType,
  effects,
  hiddenEffects,
}: ApprovalRequest) {
  const isLast = requiredApprovals - approvals <= 1;
  if (!isLast) return `Approve (${approvals + 1} of ${requiredApprovals})`;
  if (jobType === null) return 'Approve';
  if (jobType !== APPLIES_CHANGE) return 'Approve and run';
  return hiddenEffects === null
    ? 'Approve the change'
    : `Approve ${formatNumberOf(effects.length + hiddenEffects, 'change')}`;
}

/** Why an approval would lead to nothing. Rejecting always makes sense. */
const whyNotApprove = ({ blocker }: ApprovalRequest): string | undefined =>
  blocker === null || blocker.code === 'not_evaluated'
    ? undefined
    : `Nothing would run: ${exactText(blocker.message)}.`;

/** Why the buttons that decide are missing. */
function WhyNot({ request }: { request: ApprovalRequest }) {
  const { you, status } = request;
  if (you.reason === null || status !== 'pending') return null;
  return (
    <p className={classes.reason}>
      <Icon name="lock" size={14} />
      {reasonText(you.reason)}
    </p>
  );
}

type NotShownProps = Pick<Props, 'request' | 'notShown' | 'onShowAll'>;

/** An approval is also for what is not shown: how much that is, beside the button. */
function NotShown({ request, notShown, onShowAll }: NotShownProps) {
  const text = request.you.mayDecide ? notShownText(request, notShown) : undefined;
  if (text === undefined) return null;
  return (
    <div className={classes.reason} role="status">
      <Icon name="eyeOff" size={14} />
      {text}
      {notShown > 0 && (
        <Button variant="default" onClick={onShowAll}>
          Show all
        </Button>
      )}
    </div>
  );
}

/**
 * What is typed and not sent, by user and request: who decides follows links to what changes, and comes back, also
 * while it is being sent.
 */
const drafts = new Map<string, string>();
const listeners = new Set<() => void>();

const listenToDrafts = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

function keepDraft(key: string, text: string): void {
  if (text === '') drafts.delete(key);
  else drafts.set(key, text);
  for (const listener of listeners) listener();
}

/** What is typed stays here, whatever happens to the request: a decision that comes too late can be a comment. */
function useDraft(key: string, onChange: () => void) {
  const text = useSyncExternalStore(listenToDrafts, () => drafts.get(key) ?? '');
  const [missing, setMissing] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const hasText = () => drafts.has(key);
  useUnsaved(hasText);
  useBlocker({ shouldBlockFn: () => false, enableBeforeUnload: hasText });
  return {
    text,
    missing,
    field,
    change(next: string) {
      keepDraft(key, next);
      setMissing(false);
      onChange();
    },
    /** Forgets what was sent, not what was typed since. */
    clear(sent: string) {
      if (drafts.get(key) === sent) keepDraft(key, '');
    },
    /** Asks for the text that is missing. */
    ask() {
      setMissing(true);
      field.current?.focus();
    },
  };
}

type FailureProps = { error: Error; request: ApprovalRequest; names: Names; hasText: boolean };

type Draft = ReturnType<typeof useDraft>;

function CommentField({ draft, mayDecide }: { draft: Draft; mayDecide: boolean }) {
  const { text, change, missing, field } = draft;
  const left = MAX_COMMENT - text.length;
  return (
    <Textarea
      ref={field}
      className={classes.text}
      aria-label="Comment"
      placeholder={mayDecide ? 'Comment, needed to reject' : 'Comment'}
      description={left < 200 ? `${formatCount(left)} characters left` : undefined}
      error={missing ? 'Write a comment first.' : undefined}
      value={text}
      maxLength={MAX_COMMENT}
      autosize
      minRows={1}
      maxRows={6}
      dir="auto"
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

type ButtonsProps = {
  request: ApprovalRequest;
  canComment: boolean;
  /** The action that is being sent. */
  sent: Verb | undefined;
  run: (verb: Verb) => void;
};

function Buttons({ request, canComment, sent, run }: ButtonsProps) {
  return (
    <div className={classes.buttons}>
      {canComment && (
        <ReasonButton variant="default" loading={sent === 'comment'} onClick={() => run('comment')}>
          Comment
        </ReasonButton>
      )}
      {request.you.mayDecide && (
        <>
          <ReasonButton
            variant="default"
            icon="x"
            loading={sent === 'reject'}
            onClick={() => run('reject')}
          >
            Reject
          </ReasonButton>
          <ReasonButton
            icon="check"
            loading={sent === 'approve'}
            reason={whyNotApprove(request)}
            onClick={() => run('approve')}
          >
            {approveLabel(request)}
          </ReasonButton>
        </>
      )}
    </div>
  );
}

/** Why an action has failed: above all, that another person was faster. */
function Failure({ error, request, names, hasText }: FailureProps) {
  const { status, closedBy } = request;
  const { summary } = useSession();
  if (status === 'pending' || closedBy === summary.actorId || !isOvertaken(error))
    return <RefusedNote problem={error} />;
  return (
    <p className={classes.reason} role="alert">
      <Icon name="info" size={14} />
      <span>
        <Actor id={closedBy} names={names} full /> decided first: the request is{' '}
        {stateOf({ status, execution: 'none' }).label.toLowerCase()}.
        {hasText && ' What you wrote was not sent.'}
      </span>
    </p>
  );
}

type Props = {
  request: ApprovalRequest;
  names: Names;
  /** The number of records that change and are not shown yet. */
  notShown: number;
  onShowAll: () => void;
};

/** The bar at the end of the page: comment, reject, approve, or why one may not. */
export function Composer({ request, names, notShown, onShowAll }: Props) {
  const { id, you, contentHash, tenantId, siteId, deviceId } = request;
  const { can, summary } = useSession();
  const { mutate, isPending, variables, error, reset } = useActions(id, {
    onSent: ({ text }) => draft.clear(text),
  });
  const draft = useDraft(`${summary.actorId} ${id}`, () => {
    if (error) reset();
  });
  const canComment = mayComment(you.reason, can('workflow:write', { tenantId, siteId, deviceId }));
  useShortcuts(
    canComment
      ? [{ keys: 'c', label: 'Write a comment', run: () => draft.field.current?.focus() }]
      : [],
  );
  const run = (verb: Verb) => {
    const { text } = draft;
    if (isPending) return;
    if (verb !== 'approve' && text.trim() === '') draft.ask();
    else mutate({ verb, text, contentHash });
  };
  return (
    <form
      className={classes.bar}
      aria-label="Decide and comment"
      onSubmit={(event) => event.preventDefault()}
    >
      <WhyNot request={request} />
      <NotShown request={request} notShown={notShown} onShowAll={onShowAll} />
      {error && (
        <Failure error={error} request={request} names={names} hasText={draft.text !== ''} />
      )}
      {canComment && (
        <div className={classes.row}>
          <CommentField draft={draft} mayDecide={you.mayDecide} />
          <Buttons
            request={request}
            canComment={canComment}
            sent={isPending ? variables.verb : undefined}
            run={run}
          />
        </div>
      )}
    </form>
  );
}
