{{/* What would end badly is said before anything is created. */}}
{{- define "shipfitter.checks" -}}
{{- include "shipfitter.checkOnlyOne" . }}
{{- include "shipfitter.checkKinds" . }}
{{- include "shipfitter.checkPrivileged" . }}
{{- end }}

{{- define "shipfitter.checkOnlyOne" -}}
{{- $role := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" (include "shipfitter.operator" .) }}
{{- if $role }}
{{- $notes := $role.metadata.annotations | default dict }}
{{- $release := get $notes "meta.helm.sh/release-name" }}
{{- $namespace := get $notes "meta.helm.sh/release-namespace" }}
{{- if or (ne $release .Release.Name) (ne $namespace .Release.Namespace) }}
{{- fail (printf "Shipfitter is in this cluster already, as release %q in namespace %q, and one installation serves all namespaces: upgrade it with `helm upgrade %s -n %s`, or uninstall it first." $release $namespace $release $namespace) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shipfitter.checkKinds" -}}
{{- if .Values.crds.install }}
{{- $kind := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "modeldeployments.shipfitter.dev" }}
{{- if $kind }}
{{- $notes := $kind.metadata.annotations | default dict }}
{{- $labels := $kind.metadata.labels | default dict }}
{{- $ours := and (eq (get $notes "meta.helm.sh/release-name") .Release.Name) (eq (get $notes "meta.helm.sh/release-namespace") .Release.Namespace) (eq (get $labels "app.kubernetes.io/managed-by") "Helm") }}
{{- if not $ours }}
{{- $names := "crd/modeldeployments.shipfitter.dev crd/gpunodes.shipfitter.dev crd/calibrations.shipfitter.dev" }}
{{- fail (printf "Shipfitter's kinds are in this cluster already, but not from this release (an uninstalled one leaves them, so that no ModelDeployment is lost). Hand them over with `kubectl annotate --overwrite %s meta.helm.sh/release-name=%s meta.helm.sh/release-namespace=%s && kubectl label --overwrite %s app.kubernetes.io/managed-by=Helm`, or leave them as they are with `--set crds.install=false`." $names .Release.Name .Release.Namespace $names) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "shipfitter.checkPrivileged" -}}
{{- with .Values.agent }}
{{- if and .privileged (not .namespace) }}
{{- fail "agent.privileged: a privileged agent would make the operator's namespace a privileged one. Give it its own with agent.namespace, labelled pod-security.kubernetes.io/enforce=privileged." }}
{{- end }}
{{- if and .podResources (not .namespace) }}
{{- fail "agent.podResources: the kubelet's socket lies on the host, and pods that mount a hostPath need a namespace that allows it. Give the agent its own with agent.namespace, labelled pod-security.kubernetes.io/enforce=privileged." }}
{{- end }}
{{- if and .driverRoot (not .privileged) }}
{{- fail (printf "agent.driverRoot: mounting %s from the host needs agent.privileged=true and agent.namespace." .driverRoot) }}
{{- end }}
{{- end }}
{{- end }}
