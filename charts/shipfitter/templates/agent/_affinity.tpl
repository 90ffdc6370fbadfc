{{/* Terms are alternatives: any one of the labels makes a node one with GPUs. */}}
{{- define "shipfitter.agentAffinity" -}}
{{- if .Values.agent.affinity }}
{{- toYaml .Values.agent.affinity }}
{{- else if .Values.agent.gpuNodeLabels -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- range .Values.agent.gpuNodeLabels }}
      - matchExpressions:
          - key: {{ .key }}
            {{- if .values }}
            operator: In
            values: {{- toYaml .values | nindent 14 }}
            {{- else }}
            operator: Exists
            {{- end }}
      {{- end }}
{{- end }}
{{- end }}
