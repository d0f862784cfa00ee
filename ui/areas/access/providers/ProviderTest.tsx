import { TagsInput, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { whereText } from '../../../app/account/tokenText.ts';
import { answer, api } from '../../../app/api.ts';
import { PLATFORM } from '../../../app/session/tenant.ts';
import { AppLink } from '../../../parts/AppLink.tsx';
import { Exact } from '../../../parts/Exact.tsx';
import { formatDuration, labelOfField } from '../../../parts/format.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { RefusedNote } from '../../../parts/RefusedNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { mappingsQuery } from '../grants/grantQueries.ts';
import { sampleClaims } from './providerText.ts';
import type { Provider, TestReport } from './providerQueries.ts';
import classes from '../Access.module.css';

type Props = { provider: Provider };

/** Tests the connection to a provider, and which roles a person would get. Nobody is signed in. */
export function ProviderTest({ provider }: Props) {
  const { id, kind } = provider;
  const { canAnywhere } = usePermissions();
  const [username, setUsername] = useState('');
  const [groups, setGroups] = useState<string[]>([]);
  const test = useMutation({
    mutationFn: () =>
      answer(
        api.POST('/api/auth/providers/{id}/test', {
          params: { path: { id } },
          body: {
            ...(username.trim() !== '' && { username: username.trim() }),
            ...(groups.length > 0 && { sampleClaims: sampleClaims(provider, groups) }),
          },
        }),
      ),
  });
  if (!canAnywhere('auth:write')) return null;
  return (
    <Section title="Test">
      <form
        className={classes.stack}
        onSubmit={(event) => {
          event.preventDefault();
          if (!test.isPending) test.mutate();
        }}
      >
        <p className={classes.muted}>
          Connects to the provider as a login would, without signing anyone in.
        </p>
        <TestFields
          kind={kind}
          username={username}
          onUsername={setUsername}
          groups={groups}
          onGroups={setGroups}
        />
        <div>
          <PermissionButton
            type="submit"
            permission="auth:write"
            where={PLATFORM}
            icon="play"
            loading={test.isPending}
          >
            Test
          </PermissionButton>
        </div>
      </form>
      <RefusedNote problem={test.error} />
      {test.data && <Report report={test.data} providerId={id} />}
    </Section>
  );
}

type FieldsProps = {
  kind: Provider['kind'];
  username: string;
  onUsername: (username: string) => void;
  groups: string[];
  onGroups: (groups: string[]) => void;
};

/** Whom to try: a person of a directory, or a member of groups. */
function TestFields({ kind, username, onUsername, groups, onGroups }: FieldsProps) {
  if (kind === 'local') return null;
  return (
    <div className={classes.columns}>
      {kind === 'ldap' && (
        <TextInput
          label="User name to search"
          description="Shows the groups and roles of this person"
          autoComplete="off"
          spellCheck={false}
          value={username}
          onChange={(event) => onUsername(event.currentTarget.value)}
        />
      )}
      <TagsInput
        label="Groups to try"
        description="Shows the roles of a member of these groups"
        size="xs"
        placeholder={groups.length === 0 ? 'net-admins' : ''}
        acceptValueOnBlur
        value={groups}
        onChange={onGroups}
      />
    </div>
  );
}

type ReportProps = { report: TestReport; providerId: string };

function Report({ report, providerId }: ReportProps) {
  const { ok, steps, groups, roles } = report;
  return (
    <div className={classes.report} role="status" aria-label="Result of the test">
      <div className={classes.answer} data-allowed={ok}>
        <strong>{ok ? 'All steps passed.' : 'A step failed.'}</strong>
      </div>
      <ol className={classes.steps} aria-label="Steps">
        {steps.map(({ name, status, message, durationMs }) => (
          <li key={name} className={classes.step}>
            <StatusBadge
              status={status === 'passed' ? 'done' : status}
              label={labelOfField(name)}
              plain
            />
            <span>
              <Exact text={message} />
            </span>
            <span className={classes.muted}>
              {status === 'skipped' ? '' : formatDuration(durationMs)}
            </span>
          </li>
        ))}
      </ol>
      {groups.length > 0 && <Roles groups={groups} roles={roles} providerId={providerId} />}
    </div>
  );
}

type RolesProps = Pick<TestReport, 'groups' | 'roles'> & { providerId: string };

function Roles({ groups, roles, providerId }: RolesProps) {
  // The report has ids only; the mappings have the names.
  const { data } = useQuery(mappingsQuery({ providerId: [providerId] }));
  return (
    <>
      <p className={classes.muted}>
        Groups: <Exact text={groups.join(', ')} />
      </p>
      {roles.length === 0 ? (
        <p className={classes.muted}>
          No role: none of these groups is mapped. The person could sign in and see nothing.
        </p>
      ) : (
        <ul className={classes.chain} aria-label="Roles that they would get">
          {roles.map((role) => (
            <li key={role.mappingId}>
              <RecordLink id={role.roleId} names={data?.names} kind="roles" />{' '}
              {whereText(role, data?.names)}, by the{' '}
              <AppLink to={recordPath(role.mappingId)}>mapping</AppLink> of{' '}
              <Exact text={role.externalGroup} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
