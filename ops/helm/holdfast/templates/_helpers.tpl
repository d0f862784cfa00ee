{{- define "holdfast.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 }}{{ end }}
{{- end }}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "holdfast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What a ConfigMap has. */}}
{{- define "holdfast.variables" }}
  {{- range $name, $value := .Values.config }}
  {{ $name }}: {{ $value | quote }}
  {{- end }}
  {{- if .Values.backups.existingClaim }}
  HOLDFAST_BACKUP_DIR: /var/lib/holdfast/backups
  {{- end }}
{{- end }}

{{/* Variables that all processes share: dict "root" $ "configMap" <its name>. */}}
{{- define "holdfast.envFrom" -}}
envFrom:
  - configMapRef: { name: {{ .configMap }} }
  - secretRef: { name: {{ .root.Values.existingSecret }} }
{{- end }}

{{- define "holdfast.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "holdfast.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* A Deployment of one role: dict "root" $ "role" "api". */}}
{{- define "holdfast.deployment" -}}
{{- $root := .root }}
{{- $role := .role }}
{{- $values := index $root.Values $role }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "holdfast.name" $root }}-{{ $role }}
  labels:
    {{- include "holdfast.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $role }}
spec:
  replicas: {{ $values.replicas }}
  selector:
    matchLabels:
      {{- include "holdfast.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ $role }}
  strategy:
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  template:
    metadata:
      labels:
        {{- include "holdfast.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $role }}
      annotations:
        # Pods start again when a variable changes.
        checksum/config: {{ toYaml $root.Values.config | sha256sum }}
    spec:
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      automountServiceAccountToken: false
      # For the Service `holdfast`, a link would set HOLDFAST_PORT to tcp://….
      enableServiceLinks: false
      # The grace period, the pause before it, and 15 seconds more.
      terminationGracePeriodSeconds: {{ add $values.stopGraceSeconds 20 }}
      {{- include "holdfast.podSecurity" $root | nindent 6 }}
      containers:
        - name: {{ $role }}
          image: {{ include "holdfast.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [node, --max-semi-space-size=16, --max-old-space-size={{ $values.maxOldSpaceMb }}, processes/serve.js]
          {{- include "holdfast.envFrom" (dict "root" $root "configMap" (printf "%s-config" (include "holdfast.name" $root))) | nindent 10 }}
          env:
            - { name: HOLDFAST_ROLE, value: {{ $role }} }
            - { name: HOLDFAST_HOST, value: 0.0.0.0 }
            - { name: HOLDFAST_PORT, value: '8080' }
            - { name: HOLDFAST_STOP_GRACE_MS, value: '{{ mul $values.stopGraceSeconds 1000 }}' }
            - name: HOLDFAST_INSTANCE
              valueFrom: { fieldRef: { fieldPath: metadata.name } }
            {{- range $name, $value := $values.config }}
            - { name: {{ $name }}, value: {{ $value | quote }} }
            {{- end }}
          ports:
            - { name: http, containerPort: 8080 }
          startupProbe:
            httpGet: { path: /livez, port: http }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /livez, port: http }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            {{- if eq $role "api" }}
            # Not /readyz: while PostgreSQL is away, the processes themselves answer 503 with Retry-After.
            httpGet: { path: /routez, port: http }
            {{- else }}
            httpGet: { path: /readyz, port: http }
            {{- end }}
            # A process that stops serves requests for HOLDFAST_STOP_DELAY_MS, in which the endpoints of the Service change.
            periodSeconds: 2
            timeoutSeconds: 1
            failureThreshold: 2
          {{- include "holdfast.containerSecurity" $root | nindent 10 }}
          resources: {{- toYaml $values.resources | nindent 12 }}
          volumeMounts:
            - { name: tmp, mountPath: /tmp }
            {{- if $root.Values.backups.existingClaim }}
            - { name: backups, mountPath: /var/lib/holdfast/backups }
            {{- end }}
            {{- with $root.Values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - { name: tmp, emptyDir: {} }
        {{- with $root.Values.backups.existingClaim }}
        - name: backups
          persistentVolumeClaim: { claimName: {{ . }} }
        {{- end }}
        {{- with $root.Values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "holdfast.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ $role }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
