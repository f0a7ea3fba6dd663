{{- define "privet.labels" -}}
app.kubernetes.io/name: privet
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels by which a part is found: a list of the root and the part's name. */}}
{{- define "privet.selector" -}}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "privet.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "privet.pod" -}}
automountServiceAccountToken: false
{{- with .Values.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "privet.confined" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The environment of a program that opens a store. */}}
{{- define "privet.environment" -}}
{{- if .Values.stateKey -}}
- {name: PRIVET_STATE_KEY, value: "file:/run/privet/privet-state-key"}
{{- end -}}
{{- end -}}

{{- define "privet.mounts" -}}
- {name: keys, mountPath: /etc/privet/keys, readOnly: true}
- {name: configuration, mountPath: /etc/privet/privet.toml, subPath: privet.toml, readOnly: true}
- {name: temporary, mountPath: /tmp}
{{- if .Values.stateKey }}
- {name: state-key, mountPath: /run/privet, readOnly: true}
{{- end }}
{{- end -}}

{{- define "privet.volumes" -}}
- {name: keys, secret: {secretName: {{ .Values.keys | quote }}, defaultMode: 288}}
- {name: configuration, configMap: {name: {{ .Release.Name }}-configuration}}
- {name: temporary, emptyDir: {}}
{{- if .Values.stateKey }}
- {name: state-key, secret: {secretName: {{ .Values.stateKey | quote }}, defaultMode: 288}}
{{- end }}
{{- end -}}

{{/* A claim: name, size and class of storage. */}}
{{- define "privet.claim" -}}
metadata: {name: {{ index . 0 }}}
spec:
  accessModes: [ReadWriteOnce]
  {{- with index . 2 }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources: {requests: {storage: {{ index . 1 | quote }}}}
{{- end -}}

{{/* A table of privet.toml. Numbers of a file of values are floating-point; whole ones are written as such. */}}
{{- define "privet.table" -}}
[{{ index . 0 }}]
{{- range $name, $value := index . 1 }}
{{ $name }} = {{ if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ int64 $value }}{{ else }}{{ toJson $value }}{{ end }}
{{- end }}
{{ end -}}
