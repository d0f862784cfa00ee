import { Progress } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef } from 'react';
import { TenantNotice, useFormTenant } from '../../../app/useFormTenant.tsx';
import formClasses from '../../../parts/form/Form.module.css';
import { LeaveGuard } from '../../../parts/form/LeaveGuard.tsx';
import { wholePercent } from '../../../parts/format.ts';
import { ReasonButton } from '../../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RefusedNote } from '../../../parts/RefusedNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { resourcesQuery } from '../../../parts/records/resources.ts';
import type { Resource } from '../inventoryQueries.ts';
import { ColumnHelp } from './ColumnHelp.tsx';
import { FileField } from './FileField.tsx';
import { ImportOptions } from './ImportOptions.tsx';
import { useNewImport } from './useNewImport.ts';
import { useUpload } from './useUpload.ts';
import classes from './Imports.module.css';

const route = getRouteApi('/frame/inventory/imports/new');

const PARENT = { label: 'Imports', to: '/inventory/imports' };

/** Sends a file of records: to be checked first, or to be written. */
export function NewImportPage() {
  const { resource: given } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, refetch } = useQuery(resourcesQuery);
  const all = data?.items ?? [];
  const tenant = useFormTenant();
  const isSent = useRef(false);
  const form = useNewImport(given, all);
  const upload = useUpload(tenant.headers, ({ id }) => {
    isSent.current = true;
    void navigate({ to: '/inventory/imports/$importId', params: { importId: id } });
  });
  return (
    <RecordPage
      parent={PARENT}
      title="Import"
      note={`Records without a tenant of their own get the tenant ${tenant.tenant}. Rows are written with your permissions: those that you may not write are in the report.`}
      form
      aside={<ColumnHelp resource={form.resource} all={all} tenant={tenant.tenant} />}
    >
      <LeaveGuard hasChanges={() => form.chosen !== undefined && !isSent.current} />
      <TenantNotice form={tenant} />
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <ImportForm form={form} upload={upload} all={data?.items} />
    </RecordPage>
  );
}

type FormProps = {
  form: ReturnType<typeof useNewImport>;
  upload: ReturnType<typeof useUpload>;
  /** Undefined until they are read. */
  all: readonly Resource[] | undefined;
};

function ImportForm({ form, upload, all }: FormProps) {
  const { chosen, options } = form;
  const isBusy = upload.part !== undefined;
  return (
    <form
      className={formClasses.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen && form.reason === undefined) upload.start(chosen, options);
      }}
    >
      <RefusedNote problem={upload.problem} />
      <FileField
        chosen={chosen}
        onChoose={(file) => {
          upload.reset();
          form.choose(file);
        }}
        disabled={isBusy || all === undefined}
        error={form.problem}
      />
      <ImportOptions
        options={options}
        onChange={form.change}
        all={all ?? []}
        isMixable={chosen?.format !== 'csv'}
        disabled={isBusy}
      />
      {form.hint !== undefined && (
        <p className={classes.hint} role="status">
          {form.hint}
        </p>
      )}
      <div className={formClasses.buttons}>
        <ReasonButton type="submit" icon="upload" reason={form.reason} loading={isBusy}>
          {options.dryRun ? 'Start the dry run' : 'Import'}
        </ReasonButton>
        {isBusy && (
          <ReasonButton variant="default" onClick={upload.cancel}>
            Cancel
          </ReasonButton>
        )}
      </div>
      {upload.part !== undefined && <Sending part={upload.part} />}
    </form>
  );
}

/** How much of the file is sent. The service reads it while it arrives, and answers after its end. */
function Sending({ part }: { part: number }) {
  const percent = wholePercent(part * 100);
  return (
    <div className={classes.progress} role="status">
      <Progress className={classes.track} value={percent} size="lg" aria-label="Sent" />
      <span>{percent < 100 ? `${percent} % sent` : 'Sent. Reading the rows.'}</span>
    </div>
  );
}
