import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';

type JsonSchema = { [key: string]: unknown; $defs?: object };

const readJson = async (file: string) => JSON.parse(await readFile(file, 'utf8')) as JsonSchema;

/** A schema with what it refers to in itself: kubeconform does not find references to other files. */
function standalone({ $id: _id, ...schema }: JsonSchema, { $defs }: JsonSchema): string {
  const text = JSON.stringify({ ...schema, $defs });
  return text.replaceAll(/"[^"]*_definitions\.json#\//g, '"#/');
}

/** The schema of the newest version of a custom resource. */
function schemaOfCustomResource(yaml: string): { kind: string; schema: object } {
  const { spec } = parse(yaml) as {
    spec: { names: { kind: string }; versions: { schema: { openAPIV3Schema: object } }[] };
  };
  return { kind: spec.names.kind, schema: spec.versions.at(-1)?.schema.openAPIV3Schema ?? {} };
}

/**
 * `node dev/kubernetesSchemas.ts <folder with JSON schemas> <target> <file of a custom resource> …`: writes
 * the schemas with which .ci/ops-check checks the Helm chart.
 */
async function main([source = '', target = '', ...customResources]: readonly string[]) {
  await mkdir(target, { recursive: true });
  const definitions = await readJson(path.join(source, '_definitions.json'));
  const kinds = [
    ...['configmap-v1', 'deployment-apps-v1', 'ingress-networking-v1', 'job-batch-v1'],
    ...['poddisruptionbudget-policy-v1', 'secret-v1', 'service-v1', 'serviceaccount-v1'],
  ];
  for (const kind of kinds) {
    const schema = await readJson(path.join(source, `${kind}.json`));
    await writeFile(path.join(target, `${kind}.json`), standalone(schema, definitions));
  }
  for (const file of customResources) {
    const { kind, schema } = schemaOfCustomResource(await readFile(file, 'utf8'));
    await writeFile(
      path.join(target, `${kind.toLowerCase()}-monitoring-v1.json`),
      JSON.stringify(schema),
    );
  }
}

await main(process.argv.slice(2));
