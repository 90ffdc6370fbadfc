{{/* Names are fixed, not made of the release's: there is one installation in a cluster. */}}
{{- define "shipfitter.operator" -}}shipfitter-operator{{- end }}
{{- define "shipfitter.agent" -}}shipfitter-agent{{- end }}

{{- define "shipfitter.agentNamespace" -}}
{{ .Values.agent.namespace | default .Release.Namespace }}
{{- end }}

{{/* The user name of the agent's ServiceAccount, as admission sees it. */}}
{{- define "shipfitter.agentUser" -}}
system:serviceaccount:{{ include "shipfitter.agentNamespace" . }}:{{ include "shipfitter.agent" . }}
{{- end }}

{{- define "shipfitter.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "shipfitter.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: shipfitter
app.kubernetes.io/part-of: shipfitter
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "shipfitter.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
