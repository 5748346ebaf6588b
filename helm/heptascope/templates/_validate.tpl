{{/* A duration such as 1m30s in seconds. */}}
{{- define "heptascope.seconds" -}}
{{- $seconds := 0 }}
{{- range $unit, $factor := dict "h" 3600 "m" 60 "s" 1 }}
{{- with regexFind (printf "[0-9]+%s([0-9]|$)" $unit) $.duration }}
{{- $seconds = add $seconds (mul $factor (regexFind "[0-9]+" . | atoi)) }}
{{- end }}
{{- end }}
{{- $seconds }}
{{- end }}

{{/* A quantity such as 250m or 1.5Gi as a number. */}}
{{- define "heptascope.amount" -}}
{{- $factors := dict "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- mulf (regexFind "^[0-9.]+" (toString .) | float64) (get $factors (regexFind "[a-zA-Z]+$" (toString .)) | default 1) }}
{{- end }}

{{/* The port of a URL, or nothing where it names none. */}}
{{- define "heptascope.portOf" -}}
{{- regexFind ":[0-9]+$" (regexReplaceAll "^[a-z]+://([^/?#]*).*$" . "${1}") | trimPrefix ":" }}
{{- end }}

{{/* Stops with one line where values contradict each other. */}}
{{- define "heptascope.validate" -}}
{{- range list "config" "pods" "ports" "environment" "volumes" "scrapes" "alerts" }}
{{- include (printf "heptascope.validate.%s" .) $ }}
{{- end }}
{{- end }}

{{- define "heptascope.validate.config" -}}
{{- $values := .Values }}
{{- if hasKey $values.config "listen" }}
{{- fail "config.listen: the probe and the PodMonitor need to know the port; set port instead" }}
{{- end }}
{{- if or (dig "web" "token" "" $values.config) (dig "web" "token_file" "" $values.config) }}
{{- fail "config.web.token: a ConfigMap is no place for a secret; set web.token.existingSecret instead" }}
{{- end }}
{{- if or (dig "web" "tls_cert" "" $values.config) (dig "web" "tls_key" "" $values.config) }}
{{- fail "config.web.tls_cert: set web.tls.existingSecret instead, so that probe and PodMonitor know of it" }}
{{- end }}
{{- range $values.extraArgs }}
{{- if regexMatch "^--(listen|config)\\b" . }}
{{- fail (printf "extraArgs: %s would be set twice; use port or config" .) }}
{{- end }}
{{- end }}
{{- if has $values.gpu.runtimeEnv.visibleDevices (list "none" "void") }}
{{- fail (printf "gpu.runtimeEnv.visibleDevices: %s hides every GPU; set gpu.none.source nothing to read none" $values.gpu.runtimeEnv.visibleDevices) }}
{{- end }}
{{- end }}

{{/* Who listens where: a sidecar starts before the server, and would take its port. */}}
{{- define "heptascope.validate.ports" -}}
{{- $values := .Values }}
{{- $port := int $values.port }}
{{- if has $port (list 8000 30000 8002 8080 23333 3000 80 8081 9090) }}
{{- fail (printf "port: %d is a port on which model servers listen, and heptascope would take it from one; choose another" $port) }}
{{- end }}
{{- $engines := list }}
{{- range $values.config.engines }}
{{- $engines = append $engines (dict "place" "config.engines" "url" (default "" .url)) }}
{{- end }}
{{- range $values.extraEnv }}
{{- if eq .name "HEPTASCOPE_ENGINE" }}
{{- range regexFindAll "https?://[^\\s,\"']+" (default "" .value) -1 }}
{{- $engines = append $engines (dict "place" "extraEnv HEPTASCOPE_ENGINE" "url" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- $engines = append $engines (dict "place" "gpu.none.dcgmExporterUrl" "url" $values.gpu.none.dcgmExporterUrl) }}
{{- $engines = append $engines (dict "place" "gpu.none.hostEngineAddress" "url" (printf "tcp://%s" $values.gpu.none.hostEngineAddress)) }}
{{- range $engines }}
{{- $other := include "heptascope.portOf" .url }}
{{- if and $other (or (gt (atoi $other) 65535) (lt (atoi $other) 1)) }}
{{- fail (printf "%s: %s is no port" .place $other) }}
{{- end }}
{{- if and (eq $other (toString $port)) (regexMatch "^https?://([^/@]*@)?(localhost|127\\.[0-9.]+|\\[::1\\]|0\\.0\\.0\\.0|\\$\\(POD_IP\\)):" .url) }}
{{- fail (printf "%s: %s is heptascope's own port; set port to another one than the server's" .place $other) }}
{{- end }}
{{- end }}
{{- if and $values.daemonSet.enabled $values.daemonSet.hostNetwork (has $port (list 5555 9100 9400 10250)) }}
{{- fail (printf "port: with daemonSet.hostNetwork %d is the node's, where DCGM, an exporter or the kubelet listens; choose another" $port) }}
{{- end }}
{{- if has (float64 $port) $values.networkPolicy.enginePorts }}
{{- fail (printf "networkPolicy.enginePorts: %d is heptascope's own port" $port) }}
{{- end }}
{{- end }}

{{- define "heptascope.validate.environment" -}}
{{- $roles := list "sidecar" }}
{{- if .Values.daemonSet.enabled }}
{{- $roles = append $roles "daemonSet" }}
{{- end }}
{{- if .Values.injection.enabled }}
{{- $roles = append $roles "injected" }}
{{- end }}
{{- range $role := $roles }}
{{- $names := list }}
{{- range (include "heptascope.container" (dict "context" $ "role" $role) | fromYaml).env }}
{{- if has .name $names }}
{{- fail (printf "extraEnv: %s is set twice" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- end }}
{{- end }}

{{- define "heptascope.validate.volumes" -}}
{{- $values := .Values }}
{{- $names := list }}
{{- range $values.extraVolumes }}
{{- if hasPrefix "heptascope-" .name }}
{{- fail (printf "extraVolumes: %s is a name of the chart's own; choose one that does not begin with heptascope-" .name) }}
{{- end }}
{{- if has .name $names }}
{{- fail (printf "extraVolumes: %s is there twice" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- $paths := list }}
{{- range $mount := $values.extraVolumeMounts }}
{{- $path := regexReplaceAll "/+" $mount.mountPath "/" | trimSuffix "/" }}
{{- range $own := list "/etc/heptascope" "/run/secrets/heptascope" "/var/lib/kubelet/pod-resources" }}
{{- if or (hasPrefix (printf "%s/" $own) (printf "%s/" $path)) (hasPrefix (printf "%s/" $path) (printf "%s/" $own)) }}
{{- fail (printf "extraVolumeMounts: %s meets %s, where the chart mounts its own; choose another path" $mount.mountPath $own) }}
{{- end }}
{{- end }}
{{- if has $path $paths }}
{{- fail (printf "extraVolumeMounts: %s is mounted twice" $path) }}
{{- end }}
{{- $paths = append $paths $path }}
{{- if and $values.daemonSet.enabled (not (has $mount.name $names)) }}
{{- fail (printf "extraVolumeMounts: there is no volume %s; the DaemonSet's pod has those of extraVolumes" $mount.name) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "heptascope.validate.pods" -}}
{{- $values := .Values }}
{{- if and (eq $values.gpu.mode "cdi") (gt (len $values.containerName) 53) }}
{{- fail "containerName: gpu.mode cdi puts it into the name of an annotation, which has room for 53 characters" }}
{{- end }}
{{- if and $values.daemonSet.enabled (eq $values.gpu.mode "dra") }}
{{- fail "gpu.mode dra shares the claim of a server in the same pod, and a DaemonSet has none; choose another gpu.mode" }}
{{- end }}
{{- $context := $values.securityContext }}
{{- if and $context.runAsNonRoot (hasKey $context "runAsUser") (eq (toString $context.runAsUser) "0") }}
{{- fail "securityContext: runAsUser 0 is root, which runAsNonRoot forbids; the container would never start" }}
{{- end }}
{{- if and (eq (toString $context.allowPrivilegeEscalation) "false") (or $context.privileged (has "SYS_ADMIN" (dig "capabilities" "add" (list) $context))) }}
{{- fail "securityContext: what is privileged or has SYS_ADMIN must allow privilege escalation; Kubernetes refuses the pod" }}
{{- end }}
{{- if gt (int $values.livenessProbe.timeoutSeconds) (int $values.livenessProbe.periodSeconds) }}
{{- fail "livenessProbe.timeoutSeconds: longer than periodSeconds; the next probe would be due before the last one has failed" }}
{{- end }}
{{- range $resource, $most := default (dict) $values.resources.limits }}
{{- with get (default (dict) $values.resources.requests) $resource }}
{{- if gt (include "heptascope.amount" . | float64) (include "heptascope.amount" $most | float64) }}
{{- fail (printf "resources.requests.%s: %v is more than the limit, %v" $resource . $most) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $label, $_ := $values.daemonSet.podLabels }}
{{- if or (eq $label "heptascope.github.io/sidecar") (regexMatch "^app\\.kubernetes\\.io/(name|instance)$" $label) }}
{{- fail (printf "daemonSet.podLabels: %s is a label of the chart's own, by which the pods are found; choose another name" $label) }}
{{- end }}
{{- end }}
{{- if contains ".." $values.daemonSet.podResources.hostPath }}
{{- fail "daemonSet.podResources.hostPath: Kubernetes takes no path with .." }}
{{- end }}
{{- range $label, $_ := $values.commonLabels }}
{{- if or (eq $label "helm.sh/chart") (regexMatch "^app\\.kubernetes\\.io/(name|instance|version|managed-by|part-of)$" $label) }}
{{- fail (printf "commonLabels: %s is a label of the chart's own; choose another name, or set nameOverride" $label) }}
{{- end }}
{{- end }}
{{- if and $values.networkPolicy.enabled (not $values.daemonSet.enabled) (not $values.networkPolicy.enginePorts) }}
{{- fail "networkPolicy.enabled would cut the model servers off, as a policy holds for whole pods; list their ports in networkPolicy.enginePorts" }}
{{- end }}
{{- end }}

{{- define "heptascope.validate.scrapes" -}}
{{- $monitor := .Values.podMonitor }}
{{- $interval := include "heptascope.seconds" (dict "duration" $monitor.interval) | atoi }}
{{- if lt $interval 1 }}
{{- fail (printf "podMonitor.interval: %s is no time between two scrapes; at least 1s" $monitor.interval) }}
{{- end }}
{{- if and $monitor.enabled .Values.prometheusRule.enabled (gt $interval 75) }}
{{- fail (printf "podMonitor.interval: the alerts look at five minutes, which have to hold four scrapes; %s is more than 75s" $monitor.interval) }}
{{- end }}
{{- if gt $interval 150 }}
{{- fail (printf "podMonitor.interval: Prometheus forgets a series after five minutes, which have to hold two scrapes; %s is more than 150s" $monitor.interval) }}
{{- end }}
{{- with $monitor.scrapeTimeout }}
{{- $timeout := include "heptascope.seconds" (dict "duration" .) | atoi }}
{{- if lt $timeout 1 }}
{{- fail (printf "podMonitor.scrapeTimeout: %s leaves a scrape no time; at least 1s" .) }}
{{- end }}
{{- if gt $timeout $interval }}
{{- fail (printf "podMonitor.scrapeTimeout: %s is longer than the interval, %s, and the operator would drop the PodMonitor" . $monitor.interval) }}
{{- end }}
{{- end }}
{{- if and $monitor.namespaceSelector.any $monitor.namespaceSelector.matchNames }}
{{- fail "podMonitor.namespaceSelector: any goes before matchNames, which would change nothing; set any: false" }}
{{- end }}
{{- if and $monitor.sampleLimit (lt (int $monitor.sampleLimit) 1000) }}
{{- fail (printf "podMonitor.sampleLimit: a page of one GPU and one engine has hundreds of series, and a scrape with more than %d would fail as a whole; at least 1000, or 0 for no limit" (int $monitor.sampleLimit)) }}
{{- end }}
{{- end }}

{{- define "heptascope.validate.alerts" -}}
{{- $rules := .Values.prometheusRule }}
{{- range $name, $labels := set (deepCopy $rules.overrides) "alertLabels" (dict "labels" $rules.alertLabels) }}
{{- $place := ternary "prometheusRule.alertLabels" (printf "prometheusRule.overrides.%s.labels" $name) (eq $name "alertLabels") }}
{{- range $label, $_ := default (dict) $labels.labels }}
{{- if has $label (list "alertname" "component" "kind" "severity" "namespace" "pod" "instance" "engine" "cause" "cause_severity") }}
{{- $hint := ternary "set severity of a single alert instead: prometheusRule.overrides.ALERT.severity" "routes and inhibition ask for it; choose another name" (eq $label "severity") }}
{{- fail (printf "%s: %s is a label of the alerts' own; %s" $place $label $hint) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
