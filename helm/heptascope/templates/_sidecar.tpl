{{/*
For other charts that have this one as a dependency; each takes this chart's context, `.Subcharts.heptascope`
(or the dependency's alias):

  heptascope.sidecar         the native sidecar, an entry of the pod's initContainers
  heptascope.volumes         its volumes, entries of the pod's volumes; empty without config, TLS and extraVolumes
  heptascope.podLabels       labels of the pod, by which the PodMonitor finds it
  heptascope.podAnnotations  annotations of the pod; may be empty
*/}}

{{- define "heptascope.sidecar" -}}
- {{ include "heptascope.container" (dict "context" . "role" "sidecar") | indent 2 | trim }}
  restartPolicy: Always
{{- end }}

{{- define "heptascope.podLabels" -}}
heptascope.github.io/sidecar: enabled
{{- end }}

{{- define "heptascope.podAnnotations" -}}
{{- with .Values.config }}
checksum/heptascope-config: {{ toYaml . | sha256sum }}
{{- end }}
{{- if eq .Values.gpu.mode "cdi" }}
nvidia.cdi.k8s.io/container.{{ .Values.containerName }}: {{ .Values.gpu.cdi.device | quote }}
{{- end }}
{{- end }}

{{- define "heptascope.volumes" -}}
{{- if .Values.config }}
- name: heptascope-config
  configMap:
    name: {{ include "heptascope.fullname" . }}
{{- end }}
{{- include "heptascope.fileVolumes" . }}
{{- end }}

{{/* Volumes that an injected sidecar needs too: its configuration stands in its environment. */}}
{{- define "heptascope.fileVolumes" -}}
{{- with .Values.web.tls.existingSecret }}
- name: heptascope-tls
  secret:
    secretName: {{ . }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
The container: (dict "context" $ "role" ROLE). ROLE is sidecar, daemonSet, injected (its configuration is in the
environment, as a pod of another namespace cannot mount the ConfigMap) or test (no GPU: it has to start anywhere).
*/}}
{{- define "heptascope.container" -}}
{{- $values := .context.Values }}
{{- $gpu := $values.gpu }}
{{- $mode := ternary "test" $gpu.mode (eq .role "test") }}
{{- $file := and $values.config (ne .role "injected") }}
{{- $podResources := and (eq .role "daemonSet") $values.daemonSet.podResources.enabled -}}
name: {{ $values.containerName }}
image: {{ include "heptascope.image" .context }}
imagePullPolicy: {{ $values.image.pullPolicy }}
command: [heptascope, serve]
{{- with $values.extraArgs }}
args:
{{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: heptascope
    containerPort: {{ $values.port }}
    protocol: TCP
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
{{- if has .role (list "sidecar" "injected") }}
  # the pod's place in a StatefulSet or a Ray cluster; empty elsewhere, and other controllers set their own variables
  - name: POD_INDEX
    valueFrom:
      fieldRef:
        fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
  - name: RAY_CLUSTER_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.labels['ray.io/cluster']
  - name: RAY_NODE_TYPE
    valueFrom:
      fieldRef:
        fieldPath: metadata.labels['ray.io/node-type']
{{- end }}
  - name: HEPTASCOPE_LISTEN
    value: ":{{ $values.port }}"
{{- if $file }}
  # not an argument: `kubectl exec … heptascope check` reads the same file
  - name: HEPTASCOPE_CONFIG
    value: /etc/heptascope/heptascope.yaml
{{- end }}
{{- with include "heptascope.gpuEnvironment" (dict "values" $values "mode" $mode) | trim }}
  {{- . | nindent 2 }}
{{- end }}
{{- if eq .role "daemonSet" }}
  - name: HEPTASCOPE_GPU_SCOPE
    value: node
{{- end }}
{{- if $podResources }}
  - name: HEPTASCOPE_GPU_POD_RESOURCES
    value: /var/lib/kubelet/pod-resources/kubelet.sock
{{- end }}
{{- with $values.web.token.existingSecret }}
  - name: HEPTASCOPE_WEB_TOKEN
    valueFrom:
      secretKeyRef:
        name: {{ . }}
        key: {{ $values.web.token.key }}
{{- end }}
{{- if $values.web.tls.existingSecret }}
  - name: HEPTASCOPE_WEB_TLS_CERT
    value: /run/secrets/heptascope/tls/tls.crt
  - name: HEPTASCOPE_WEB_TLS_KEY
    value: /run/secrets/heptascope/tls/tls.key
{{- end }}
{{- if and $values.config (eq .role "injected") }}
{{- include "heptascope.configEnvironment" (dict "value" $values.config "path" "") | trim | nindent 2 }}
{{- end }}
{{- with $values.extraEnv }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.livenessProbe.enabled }}
livenessProbe:
  httpGet:
    path: /healthz
    port: heptascope
{{- if $values.web.tls.existingSecret }}
    scheme: HTTPS
{{- end }}
  periodSeconds: {{ $values.livenessProbe.periodSeconds }}
  timeoutSeconds: {{ $values.livenessProbe.timeoutSeconds }}
  failureThreshold: {{ $values.livenessProbe.failureThreshold }}
{{- end }}
{{- $resources := deepCopy $values.resources }}
{{- if eq $mode "dra" }}
{{- $claim := dict "name" $gpu.dra.claim }}
{{- with $gpu.dra.request }}
{{- $claim = set $claim "request" . }}
{{- end }}
{{- $resources = set $resources "claims" (list $claim) }}
{{- end }}
{{- with $resources }}
resources:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- if $podResources }}
securityContext:
{{- /* the kubelet's socket is root's; `merge` would take false and 0 for unset */}}
{{- $root := deepCopy $values.securityContext }}
{{- $_ := set $root "runAsNonRoot" false }}
{{- $_ := set $root "runAsUser" 0 }}
{{- $_ := set $root "runAsGroup" 0 }}
{{- toYaml $root | nindent 2 }}
{{- else }}
{{- with $values.securityContext }}
securityContext:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
terminationMessagePolicy: FallbackToLogsOnError
{{- if or $file $values.web.tls.existingSecret $podResources $values.extraVolumeMounts }}
volumeMounts:
{{- if $file }}
  - name: heptascope-config
    mountPath: /etc/heptascope
    readOnly: true
{{- end }}
{{- if $values.web.tls.existingSecret }}
  - name: heptascope-tls
    mountPath: /run/secrets/heptascope/tls
    readOnly: true
{{- end }}
{{- if $podResources }}
  - name: heptascope-pod-resources
    mountPath: /var/lib/kubelet/pod-resources
    readOnly: true
{{- end }}
{{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Environment by which the container gets at GPUs: (dict "values" $ "mode" MODE). What `config` says goes before it. */}}
{{- define "heptascope.gpuEnvironment" -}}
{{- $none := .values.gpu.none }}
{{- $config := .values.config }}
{{- if eq .mode "none" }}
{{- if ne $none.source "nothing" }}
- name: HOST_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- if not (dig "gpu" "source" "" $config) }}
- name: HEPTASCOPE_GPU_SOURCE
  value: {{ ternary "none" $none.source (eq $none.source "nothing") }}
{{- end }}
{{- if and (eq $none.source "dcgm-exporter") (not (dig "gpu" "dcgm_exporter" "urls" "" $config)) }}
- name: HEPTASCOPE_GPU_DCGM_EXPORTER_URLS
  value: {{ $none.dcgmExporterUrl | quote }}
{{- end }}
{{- if and (eq $none.source "dcgm") (not (dig "gpu" "dcgm" "address" "" $config)) }}
- name: HEPTASCOPE_GPU_DCGM_ADDRESS
  value: {{ $none.hostEngineAddress | quote }}
{{- end }}
{{- else if eq .mode "test" }}
- name: HEPTASCOPE_GPU_SOURCE
  value: none
{{- else if eq .mode "runtimeEnv" }}
- name: NVIDIA_VISIBLE_DEVICES
  value: {{ .values.gpu.runtimeEnv.visibleDevices | quote }}
- name: NVIDIA_DRIVER_CAPABILITIES
  value: utility
{{- else if eq .mode "dra" }}
- name: HEPTASCOPE_GPU_SCOPE
  value: pod
{{- end }}
{{- end }}

{{/*
The configuration as environment variables: (dict "value" MAP "path" ""). Sections become part of the name; lists and
the two mappings with free keys are written as YAML.
*/}}
{{- define "heptascope.configEnvironment" -}}
{{- range $key, $value := .value }}
{{- $path := ternary $key (printf "%s_%s" $.path $key) (empty $.path) }}
{{- if and (kindIs "map" $value) (not (has $path (list "peaks" "rules_overrides"))) }}
{{- include "heptascope.configEnvironment" (dict "value" $value "path" $path) }}
{{- else }}
{{ "" }}
- name: HEPTASCOPE_{{ ternary "ENGINE" (upper $path) (eq $path "engines") }}
  value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end }}
{{- end }}
{{- end }}
