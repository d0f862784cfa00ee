import type { ReactNode } from 'react';
import { whereText } from '../../../app/account/tokenText.ts';
import { Exact } from '../../../parts/Exact.tsx';
import { personName } from '../../../parts/names.ts';
import { Section } from '../../../parts/Section.tsx';
import { Chain } from './Chain.tsx';
import type { ExplainedGrant, Explanation, Question } from './explainQueries.ts';
import { NearMisses } from './NearMisses.tsx';
import classes from '../Access.module.css';

type Props = { explanation: Explanation; question: Question };

/** Whether an account may do it, with the reasons one by one. */
export function Answer({ explanation, question }: Props) {
  const { allowed, reason, userId, permission, resourceScope, grants, jobTypeGrants } = explanation;
  const names = explanation.included;
  const who = personName(names, userId);
  const where = whereText(resourceScope, names);
  return (
    <>
      <div className={classes.answer} data-allowed={allowed} role="status">
        <strong>
          {allowed ? 'Yes' : 'No'}: <Exact text={who} /> {allowed ? 'may' : 'may not'}{' '}
          <code>{permission}</code>
          {question.jobType !== undefined && (
            <>
              {' '}
              for jobs of the type <code>{question.jobType}</code>
            </>
          )}{' '}
          {where === 'everywhere' ? where : `at ${where}`}.
        </strong>
        <span>{reason}</span>
      </div>
      <Chains
        title={`What includes ${permission}`}
        grants={grants}
        explanation={explanation}
        verb={
          <>
            includes <code>{permission}</code>
          </>
        }
      />
      <Chains
        title={`What names ${question.jobType ?? ''}`}
        grants={jobTypeGrants ?? []}
        explanation={explanation}
        verb={
          <>
            names the job type <code>{question.jobType}</code>, or its area
          </>
        }
      />
      {!allowed && <NearMisses question={question} />}
    </>
  );
}

type ChainsProps = {
  title: string;
  grants: readonly ExplainedGrant[];
  explanation: Explanation;
  /** What the roles do, such as `includes job:write`. */
  verb: ReactNode;
};

function Chains({ title, grants, explanation, verb }: ChainsProps) {
  const { userId, resourceScope, included: names } = explanation;
  if (grants.length === 0) return null;
  return (
    <Section title={title}>
      {grants.map((grant) => (
        <Chain
          key={grant.id}
          grant={grant}
          userId={userId}
          names={names}
          asked={whereText(resourceScope, names)}
          conclusion={verb}
        />
      ))}
    </Section>
  );
}
