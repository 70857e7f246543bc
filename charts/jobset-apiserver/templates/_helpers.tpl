{{/* Labels of every object, beside its own. */}}
{{- define "jobset.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/part-of: jobset-apiserver
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Annotations of an object: (list $ whether kube-apiserver trusts our certificate through it). */}}
{{- define "jobset.annotations" -}}
{{- $root := index . 0 }}
{{- $annotations := deepCopy $root.Values.commonAnnotations }}
{{- if and (index . 1) (eq $root.Values.tls.mode "cert-manager") }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" "jobset-system/jobset-apiserver" }}
{{- end }}
{{- with $annotations }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The authority of your own certificate, in base64, or nothing. */}}
{{- define "jobset.caBundle" -}}
{{- if eq .Values.tls.mode "secret" }}{{ with .Values.tls.caBundle }}{{ b64enc . }}{{ end }}{{ end }}
{{- end }}

{{/* The registry of the images, or nothing: the value, or the one that the chart was published in. */}}
{{- define "jobset.registry" -}}
{{- if not .Values.image.local }}{{ .Values.image.registry | default (index (.Chart.Annotations | default dict) "jobset-apiserver.io/registry") | default "" | trimSuffix "/" }}{{ end }}
{{- end }}

{{/*
The image of a program: (list $ its-values its-name). A digest of its own comes first, then the tag, then the digest of the release that the chart belongs to.
Nodes do not find an image that was imported by its digest.
*/}}
{{- define "jobset.image" -}}
{{- $root := index . 0 }}
{{- $image := (index . 1).image }}
{{- $program := index . 2 }}
{{- $digest := $image.digest }}
{{- if not (or $digest $root.Values.image.tag $root.Values.image.local) }}
{{- $digest = index ($root.Chart.Annotations | default dict) (printf "jobset-apiserver.io/digest.%s" $program) }}
{{- end }}
{{- with include "jobset.registry" $root }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $digest }}@{{ $digest }}{{ else }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The flag with the feature gates of a program, sorted, or nothing: (list $ its values). */}}
{{- define "jobset.featureGates" -}}
{{- $root := index . 0 }}
{{- $gates := deepCopy $root.Values.featureGates }}
{{- range $name, $on := (index . 1).featureGates }}{{ $_ := set $gates $name $on }}{{ end }}
{{- if $root.Values.kinds.disaggregatedset }}{{ $_ := set $gates "DisaggregatedSet" true }}{{ end }}
{{- if $gates }}
{{- $words := list }}
{{- range $name, $on := $gates }}{{ $words = append $words (printf "%s=%t" $name $on) }}{{ end }}
- --feature-gates={{ $words | sortAlpha | join "," }}
{{- end }}
{{- end }}

{{/* The flag that switches API groups of the server off, or nothing. */}}
{{- define "jobset.runtimeConfig" -}}
{{- $off := list }}
{{- if not .Values.kinds.jobset }}{{ $off = append $off "jobset.x-k8s.io/v1alpha2=false" }}{{ end }}
{{- if not .Values.kinds.sequentialjob }}{{ $off = append $off "batch.jobset-apiserver.io/v1alpha1=false" }}{{ end }}
{{- if not .Values.kinds.leaderworkerset }}{{ $off = append $off "leaderworkerset.x-k8s.io/v1=false" }}{{ end }}
{{- with $off }}
- --runtime-config={{ join "," . }}
{{- end }}
{{- end }}

{{/* The flag that leaves controllers out, or nothing. */}}
{{- define "jobset.controllers" -}}
{{- $off := list }}
{{- if not .Values.kinds.jobset }}{{ $off = append $off "-jobset,-endpoints" }}{{ end }}
{{- if not .Values.kinds.sequentialjob }}{{ $off = append $off "-sequentialjob,-podgroup" }}{{ end }}
{{- if not .Values.kinds.leaderworkerset }}{{ $off = append $off "-leaderworkerset" }}{{ end }}
{{- with $off }}
- --controllers=*,{{ join "," . }}
{{- end }}
{{- end }}

{{/* Nine tenths of the memory limit of a program, or nothing: its values. */}}
{{- define "jobset.memoryLimit" -}}
{{- with (.resources.limits).memory }}
{{- $mebibytes := trimSuffix "Mi" . | int64 }}
{{- if hasSuffix "Gi" . }}{{ $mebibytes = trimSuffix "Gi" . | int64 | mul 1024 }}{{ end }}
{{- div (mul $mebibytes 9) 10 }}MiB
{{- end }}
{{- end }}

{{/* What both pods have alike, from the values of their program: (list $ its values). */}}
{{- define "jobset.pod" -}}
{{- $root := index . 0 }}
{{- with (index . 1) }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* How many pods of the server run. */}}
{{- define "jobset.replicas" -}}
{{- if kindIs "invalid" .Values.apiserver.replicas }}{{ eq .Values.store.type "embedded" | ternary 1 3 }}{{ else }}{{ .Values.apiserver.replicas }}{{ end }}
{{- end }}

{{/* Whether the embedded etcd has three members: true, or nothing. */}}
{{- define "jobset.members" -}}
{{- if and (eq .Values.store.type "embedded") (eq (include "jobset.replicas" .) "3") }}true{{ end }}
{{- end }}

{{/* Whether one server with its embedded store is the whole installation: true, or nothing. */}}
{{- define "jobset.single" -}}
{{- if and (eq .Values.store.type "embedded") (not (include "jobset.members" .)) }}true{{ end }}
{{- end }}

{{/* Whether the backups of the embedded store have a claim of their own: true, or nothing. Three members have them beside their data. */}}
{{- define "jobset.backupClaim" -}}
{{- if and .Values.store.embedded.backup.enabled (include "jobset.single" .) }}true{{ end }}
{{- end }}

{{/* How many pods of the controller run. */}}
{{- define "jobset.controllerReplicas" -}}
{{- if kindIs "invalid" .Values.controller.replicas }}{{ include "jobset.single" . | empty | ternary 2 1 }}{{ else }}{{ .Values.controller.replicas }}{{ end }}
{{- end }}
