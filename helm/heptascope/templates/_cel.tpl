{{/*
A value as a CEL expression for a MutatingAdmissionPolicy: (dict "value" VALUE "type" TYPE). TYPE is the path of the
value's type, such as Object.spec.initContainers; the maps named below have free keys and are CEL maps. What is null is
left out, as the API server does.
*/}}
{{- define "heptascope.cel" -}}
{{- $type := .type }}
{{- if kindIs "slice" .value -}}
[
{{- range $index, $item := .value }}{{ if $index }}, {{ end }}{{ include "heptascope.cel" (dict "value" $item "type" $type) }}{{ end -}}
]
{{- else if kindIs "map" .value -}}
{{- $free := has (splitList "." $type | last) (list "requests" "limits" "matchLabels" "labels" "annotations" "options" "volumeAttributes" "nodePublishSecretRef") }}
{{- $given := dict }}
{{- range $key, $item := .value }}
{{- if not (kindIs "invalid" $item) }}{{ $_ := set $given $key $item }}{{ end }}
{{- end }}
{{- ternary "" $type $free }}{
{{- range $index, $key := keys $given | sortAlpha }}
{{- if $index }},{{ end }}
{{- $field := include "heptascope.cel" (dict "value" (get $given $key) "type" (printf "%s.%s" $type $key)) }}
{{- printf "%s: %s" (ternary (quote $key) $key $free) $field | nindent 2 }}
{{- end }}
}
{{- else if kindIs "string" .value -}}
{{ toJson .value }}
{{- else if kindIs "float64" .value -}}
{{ int64 .value }}
{{- else -}}
{{ .value }}
{{- end }}
{{- end }}
