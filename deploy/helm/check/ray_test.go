package check

import (
	"bufio"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rayCluster has the fields of KubeRay's RayCluster (ray.io/v1) that the chart uses. KubeRay's own module is not among the
// dependencies, so that these names are compared with nothing but its documentation; pods inside are Kubernetes' own.
type rayCluster struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            struct {
		RayVersion       string     `json:"rayVersion"`
		HeadGroupSpec    rayGroup   `json:"headGroupSpec"`
		WorkerGroupSpecs []rayGroup `json:"workerGroupSpecs"`
	} `json:"spec"`
}

type rayGroup struct {
	GroupName      string               `json:"groupName,omitempty"`
	Replicas       *int32               `json:"replicas,omitempty"`
	MinReplicas    *int32               `json:"minReplicas,omitempty"`
	MaxReplicas    *int32               `json:"maxReplicas,omitempty"`
	RayStartParams map[string]string    `json:"rayStartParams"`
	Template       core.PodTemplateSpec `json:"template"`
}

func newReader(text string) *bufio.Reader {
	return bufio.NewReader(strings.NewReader(text))
}
