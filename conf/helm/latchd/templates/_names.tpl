{{- define "latchd.name" -}}
{{ if contains "latchd" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-latchd{{ end }}
{{- end }}
{{- define "latchd.selector" -}}
app.kubernetes.io/name: latchd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "latchd.labels" -}}
{{ include "latchd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
