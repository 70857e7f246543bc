{{/* The flags of the server. */}}
{{- define "jobset.apiserver.args" -}}
- --secure-port={{ .Values.apiserver.port }}
{{- if eq .Values.tls.mode "managed" }}
- --tls-managed-secret=jobset-system/jobset-apiserver-serving
{{- else }}
- --tls-cert-file=/etc/jobset-apiserver/tls/tls.crt
- --tls-private-key-file=/etc/jobset-apiserver/tls/tls.key
{{- end }}
- --shutdown-delay-duration=15s
- --v={{ .Values.apiserver.verbosity }}
- --storage=$(STORAGE)
{{- if eq .Values.store.type "embedded" }}
- --data-dir=/var/lib/jobset-apiserver/data
- --pod-name=$(POD_NAME)
{{- if include "jobset.members" . }}
- --embedded-etcd-members=jobset-apiserver-member-0.jobset-system.svc,jobset-apiserver-member-1.jobset-system.svc,jobset-apiserver-member-2.jobset-system.svc
{{- end }}
{{- if include "jobset.backupClaim" . }}
- --backup-dir=/backups
{{- else if .Values.store.embedded.backup.enabled }}
- --backup-dir=/var/lib/jobset-apiserver/backups
- --backup-keep=3
{{- end }}
{{- with .Values.store.embedded.backup.s3 }}
{{- if .enabled }}
- --backup-upload=$(BACKUP_S3_URL)
- --backup-upload-keep={{ .keep }}
{{ include "jobset.s3.args" . }}
{{- end }}
{{- end }}
{{- else }}
- --etcd-servers=$(ETCD_ENDPOINTS)
- --etcd-cafile=/etc/jobset-apiserver/etcd/ca.crt
- --etcd-certfile=/etc/jobset-apiserver/etcd/tls.crt
- --etcd-keyfile=/etc/jobset-apiserver/etcd/tls.key
{{- end }}
{{- include "jobset.archive.args" . }}
{{- include "jobset.runtimeConfig" . }}
{{- include "jobset.featureGates" (list $ .Values.apiserver) }}
{{- with .Values.apiserver.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The container of the server, without its name. */}}
{{- define "jobset.apiserver.container" -}}
image: {{ include "jobset.image" (list $ .Values.apiserver "jobset-apiserver") }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
args:
{{ include "jobset.apiserver.args" . }}
env:
{{- with include "jobset.memoryLimit" .Values.apiserver }}
# Go collects garbage more often near this limit, which is nine tenths of the one below.
- name: GOMEMLIMIT
  value: {{ . }}
{{- end }}
- name: STORAGE
  valueFrom:
    configMapKeyRef:
      name: jobset-apiserver-storage
      key: storage
{{- if eq .Values.store.type "embedded" }}
# Without further members, a second pod would have an empty store of its own: it does not start.
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if .Values.store.embedded.backup.s3.enabled }}
{{ include "jobset.s3.env" .Values.store.embedded.backup.s3 }}
{{- end }}
{{- else }}
- name: ETCD_ENDPOINTS
  valueFrom:
    configMapKeyRef:
      name: jobset-apiserver-etcd
      key: endpoints
{{- end }}
{{- if include "jobset.postgres" . }}
- name: ARCHIVE_DATABASE
  value: {{ .Values.archive.database | quote }}
{{- end }}
{{- with .Values.apiserver.extraEnv }}
{{ toYaml . }}
{{- end }}
ports:
- name: https
  containerPort: {{ .Values.apiserver.port }}
  protocol: TCP
{{- if include "jobset.members" . }}
- name: etcd-client
  containerPort: 2379
  protocol: TCP
- name: etcd-peer
  containerPort: 2380
  protocol: TCP
{{- end }}
startupProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  periodSeconds: 2
  failureThreshold: 150
  timeoutSeconds: 5
livenessProbe:
  # An outage of an etcd elsewhere, or of other members, is not mended by a restart.
  httpGet: {path: {{ and (eq .Values.store.type "embedded") (not (include "jobset.members" .)) | ternary "/livez" "/livez?exclude=etcd" | quote }}, port: https, scheme: HTTPS}
  periodSeconds: 10
  failureThreshold: 8
  timeoutSeconds: 10
readinessProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 5
  failureThreshold: 2
  timeoutSeconds: 5
# Why a server that does not start has ended is in the status of its pod.
terminationMessagePolicy: FallbackToLogsOnError
resources:
  {{- toYaml .Values.apiserver.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
- name: tmp
  mountPath: /tmp
{{- if ne .Values.tls.mode "managed" }}
- name: tls
  mountPath: /etc/jobset-apiserver/tls
  readOnly: true
{{- end }}
{{- if eq .Values.store.type "embedded" }}
- name: data
  mountPath: /var/lib/jobset-apiserver
{{- if include "jobset.backupClaim" . }}
- name: backups
  mountPath: /backups
{{- end }}
{{- if .Values.store.embedded.backup.s3.enabled }}
- name: backup-s3
  mountPath: /etc/jobset-apiserver/s3
  readOnly: true
{{- end }}
{{- else }}
- name: etcd
  mountPath: /etc/jobset-apiserver/etcd
  readOnly: true
{{- end }}
{{- if include "jobset.archive.secret" . }}
- name: archive
  mountPath: /etc/jobset-apiserver/archive
  readOnly: true
{{- end }}
{{- with .Values.apiserver.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "jobset.apiserver.volumes" -}}
{{- $store := .Values.store.embedded -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- if ne .Values.tls.mode "managed" }}
- name: tls
  secret:
    secretName: {{ .Values.tls.secretName }}
    defaultMode: 0440
{{- end }}
{{- if eq .Values.store.type "embedded" }}
{{- with $store.existingClaim }}
- name: data
  persistentVolumeClaim:
    claimName: {{ . }}
{{- end }}
{{- if include "jobset.backupClaim" . }}
- name: backups
  persistentVolumeClaim:
    claimName: {{ $store.backup.existingClaim | default "jobset-apiserver-backups" }}
{{- end }}
{{- with $store.backup.s3 }}
{{- if .enabled }}
- name: backup-s3
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
    # A server whose Secret is missing starts, and copies its backups when the Secret is there.
    optional: true
{{- end }}
{{- end }}
{{- else }}
- name: etcd
  secret:
    secretName: {{ .Values.store.external.secretName }}
    defaultMode: 0440
{{- end }}
{{- with include "jobset.archive.secret" . }}
- name: archive
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    # A server whose Secret is missing starts, and records runs when the Secret is there.
    optional: true
{{- end }}
{{- with .Values.apiserver.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The values of the server for its pods. Two members on one node would be lost together, and with them the majority. So they keep away from each other, whatever
the affinity of the values says beside that.
*/}}
{{- define "jobset.apiserver.pod" -}}
{{- $pod := deepCopy .Values.apiserver }}
{{- if include "jobset.members" . }}
{{- $labels := dict "app.kubernetes.io/name" "jobset-apiserver" "jobset-apiserver.io/storage" "embedded" }}
{{- $apart := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) }}
{{- $anti := $pod.affinity.podAntiAffinity | default dict }}
{{- $required := append ($anti.requiredDuringSchedulingIgnoredDuringExecution | default list) $apart }}
{{- $_ := set $anti "requiredDuringSchedulingIgnoredDuringExecution" $required }}
{{- $_ := set $pod.affinity "podAntiAffinity" $anti }}
{{- end }}
{{- include "jobset.pod" (list . $pod) }}
{{- end }}

{{- define "jobset.apiserver.spread" -}}
{{- if not (kindIs "invalid" .Values.apiserver.topologySpreadConstraints) }}
{{- with .Values.apiserver.topologySpreadConstraints }}
topologySpreadConstraints:
{{ toYaml . }}
{{- end }}
{{- else if include "jobset.members" . }}
topologySpreadConstraints:
- topologyKey: topology.kubernetes.io/zone
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: jobset-apiserver
      jobset-apiserver.io/storage: embedded
{{- else if eq .Values.store.type "external" }}
topologySpreadConstraints:
- topologyKey: kubernetes.io/hostname
  maxSkew: 1
  whenUnsatisfiable: DoNotSchedule
  # Nodes that are drained do not count.
  nodeTaintsPolicy: Honor
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: jobset-apiserver
  matchLabelKeys: [pod-template-hash]
- topologyKey: topology.kubernetes.io/zone
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: jobset-apiserver
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{/* Where backups in an object storage are. */}}
{{- define "jobset.s3.env" -}}
- name: BACKUP_S3_URL
  value: {{ .url }}
- name: AWS_ENDPOINT_URL_S3
  value: {{ .endpoint }}
- name: AWS_REGION
  value: {{ .region }}
{{- end }}

{{/* How an object storage is reached. The Secret is mounted as the directory. */}}
{{- define "jobset.s3.args" -}}
- --s3-credentials-dir=/etc/jobset-apiserver/s3
{{- with .caKey }}
- --s3-ca-file=/etc/jobset-apiserver/s3/{{ . }}
{{- end }}
{{- if not (kindIs "invalid" .pathStyle) }}
- --s3-path-style={{ .pathStyle }}
{{- end }}
{{- end }}
