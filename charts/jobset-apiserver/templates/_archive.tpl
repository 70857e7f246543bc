{{/* Whether runs are kept in PostgreSQL: true, or nothing. */}}
{{- define "jobset.postgres" -}}
{{- if hasPrefix "postgres" .Values.archive.database }}true{{ end }}
{{- end }}

{{/* The Secret for PostgreSQL, or nothing. */}}
{{- define "jobset.archive.secret" -}}
{{- if include "jobset.postgres" . }}{{ .Values.archive.passwordSecret }}{{ end }}
{{- end }}

{{/* The flags of the archive of runs, or nothing. */}}
{{- define "jobset.archive.args" -}}
{{- if ne .Values.archive.database "none" }}
{{- if include "jobset.postgres" . }}
- --archive-database=$(ARCHIVE_DATABASE)
{{- if .Values.archive.passwordSecret }}
- --archive-database-password-file=/etc/jobset-apiserver/archive/password
{{- end }}
{{- else }}
- --archive-database={{ .Values.archive.database }}
{{- end }}
- --archive-retention={{ .Values.archive.retention }}
- --archive-retention-bytes={{ .Values.archive.retentionBytes }}
{{- with .Values.archive.allowedEnv }}
- {{ printf "--archive-allowed-env=%s" (join "," .) | quote }}
{{- end }}
{{- with .Values.archive.omittedKeys }}
- {{ printf "--archive-omitted-keys=%s" (join "," .) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* A size of the schema in MiB. */}}
{{- define "jobset.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 }}
{{- if hasSuffix "Ti" . }}{{ mul $number 1048576 }}{{ else if hasSuffix "Gi" . }}{{ mul $number 1024 }}{{ else }}{{ $number }}{{ end }}
{{- end }}
