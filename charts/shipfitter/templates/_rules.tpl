{{/* The operator's rights on what has no namespace. */}}
{{- define "shipfitter.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch{{ if .Values.capacity.labelNodes }}, patch{{ end }}]
- apiGroups: [resource.k8s.io]
  # resourceclaims: the devices that claims hold, whoever made them
  resources: [resourceslices, deviceclasses, resourceclaims]
  verbs: [get, list, watch]
- apiGroups: [karpenter.sh] # GPU nodes that would come
  resources: [nodepools]
  verbs: [get, list, watch]
- apiGroups: [cluster.x-k8s.io, machine.openshift.io] # and those of machine groups
  resources: [machinedeployments, machinesets]
  verbs: [get, list, watch]
- apiGroups: [shipfitter.dev]
  resources: [gpunodes]
  verbs: [get, list, watch]
- apiGroups: [shipfitter.dev]
  resources: [calibrations]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [shipfitter.dev]
  resources: [calibrations/status]
  verbs: [get, update, patch]
- apiGroups: [""]
  resources: [pods] # the GPUs that pods hold, whoever they belong to
  verbs: [get, list, watch]
{{- end }}

{{/* Its rights in the namespaces it serves. Nothing on Secrets, nothing on pods/exec. */}}
{{- define "shipfitter.namespaceRules" -}}
- apiGroups: [shipfitter.dev]
  resources: [modeldeployments]
  verbs: [get, list, watch]
- apiGroups: [shipfitter.dev]
  resources: [modeldeployments/status]
  verbs: [get, update, patch]
- apiGroups: [shipfitter.dev]
  resources: [modeldeployments/finalizers] # OpenShift asks for it before an owner reference is set
  verbs: [update]
- apiGroups: [apps]
  resources: [deployments]
  verbs: &own [get, list, watch, create, update, patch, delete]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: *own
- apiGroups: [batch]
  resources: [jobs]
  verbs: *own
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: *own
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: *own
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: *own
- apiGroups: [""]
  resources: [persistentvolumeclaims, resourcequotas]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods] # patch: pod-deletion-cost, so that scaling down frees whole nodes
  verbs: [get, list, watch, patch]
{{- if .Values.operator.readPodLogs }}
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
