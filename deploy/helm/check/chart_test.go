// Package check lints the chart, renders it with several values, and reads what comes out as Kubernetes' own types, where a
// field that they do not have is an error.
package check

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

const chart = "../privet"

type values = map[string]any

var everything = values{
	"stateKey": "privet-state",
	"server":   values{"dealer": "dealer:7401", "storageClass": "fast", "configuration": values{"max_material": "40GiB", "workers": 4.0}},
	"dealer":   values{"enabled": true},
	"gateway": values{
		"enabled": true, "server": "https://server:7480",
		"application": []any{values{"name": "application", "image": "python:3.12"}},
	},
	"ray":         values{"enabled": true},
	"pullSecrets": []any{values{"name": "registry"}},
}

// cases are values by the kinds of objects that they make.
var cases = map[string]struct {
	given values
	kinds []string
}{
	"server": {values{}, []string{"ConfigMap", "Service", "StatefulSet"}},
	"dealer": {
		values{"server": values{"enabled": false}, "dealer": values{"enabled": true}},
		[]string{"ConfigMap", "Service", "Deployment"},
	},
	"gateway": {
		values{"server": values{"enabled": false}, "gateway": values{"enabled": true, "server": "https://a:7480"}},
		[]string{"ConfigMap", "Service", "StatefulSet"},
	},
	"everything": {
		everything,
		[]string{
			"ConfigMap", "PersistentVolumeClaim", "PersistentVolumeClaim", "Service", "Service", "Service", "Deployment",
			"rayCluster", "StatefulSet", "StatefulSet",
		},
	},
}

func render(given values) (string, error) {
	loaded, err := loader.Load(chart)
	if err != nil {
		return "", err
	}
	install := action.NewInstall(new(action.Configuration))
	install.DryRun, install.ClientOnly, install.ReleaseName, install.Namespace = true, true, "try", "default"
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}
	release, err := install.Run(loaded, given)
	if err != nil {
		return "", err
	}
	return release.Manifest, nil
}

// read gives each document as its own type, or says which field that type does not have.
func read(manifest string) ([]any, error) {
	var found []any
	documents := yaml.NewYAMLReader(newReader(manifest))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		var head struct{ Kind string }
		if err := strict.Unmarshal(document, &head); err != nil {
			return nil, err
		}
		if head.Kind == "" { // a document of comments
			continue
		}
		object := map[string]func() any{
			"ConfigMap":             func() any { return new(core.ConfigMap) },
			"PersistentVolumeClaim": func() any { return new(core.PersistentVolumeClaim) },
			"Service":               func() any { return new(core.Service) },
			"Deployment":            func() any { return new(apps.Deployment) },
			"StatefulSet":           func() any { return new(apps.StatefulSet) },
			"RayCluster":            func() any { return new(rayCluster) },
		}[head.Kind]
		if object == nil {
			return nil, fmt.Errorf("kind %q", head.Kind)
		}
		one := object()
		if err := strict.UnmarshalStrict(document, one); err != nil {
			return nil, fmt.Errorf("%s: %w", head.Kind, err)
		}
		found = append(found, one)
	}
}

func TestChartIsLinted(t *testing.T) {
	for name, one := range cases {
		for _, message := range lint.AllWithKubeVersion(chart, one.given, "default", nil).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s: %v", name, message.Path, message.Err)
			}
		}
	}
}

func TestChartRendersObjectsThatKubernetesKnows(t *testing.T) {
	for name, one := range cases {
		manifest, err := render(one.given)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects, err := read(manifest)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, manifest)
		}
		// Whoever knows the programs' options reads their configuration there.
		if folder := os.Getenv("PRIVET_RENDERED"); folder != "" {
			if err := os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kinds := map[string]int{}
		for _, kind := range one.kinds {
			kinds[kind]++
		}
		for _, object := range objects {
			kinds[reflect.TypeOf(object).Elem().Name()]--
		}
		for kind, left := range kinds {
			if left != 0 {
				t.Errorf("%s: %d too few of %s", name, left, kind)
			}
		}
	}
}

func pods(t *testing.T, given values) map[string]core.PodSpec {
	t.Helper()
	manifest, err := render(given)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := read(manifest)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]core.PodSpec{}
	for _, object := range objects {
		switch object := object.(type) {
		case *apps.StatefulSet:
			found[object.Name] = object.Spec.Template.Spec
		case *apps.Deployment:
			found[object.Name] = object.Spec.Template.Spec
		case *rayCluster:
			found[object.Name+"-head"] = object.Spec.HeadGroupSpec.Template.Spec
			for _, group := range object.Spec.WorkerGroupSpecs {
				found[object.Name+"-"+group.GroupName] = group.Template.Spec
			}
		}
	}
	return found
}

func TestPodsAreConfinedAndMountWhatTheyName(t *testing.T) {
	found := pods(t, everything)
	if len(found) != 6 {
		t.Fatalf("%d pods", len(found))
	}
	for name, pod := range found {
		if !*pod.SecurityContext.RunAsNonRoot || *pod.AutomountServiceAccountToken {
			t.Errorf("%s runs as root or has a token", name)
		}
		container := pod.Containers[0]
		if !*container.SecurityContext.ReadOnlyRootFilesystem || *container.SecurityContext.AllowPrivilegeEscalation {
			t.Errorf("%s is not confined", name)
		}
		volumes := map[string]bool{"state": name == "try-server" || name == "try-gateway"}
		for _, volume := range pod.Volumes {
			volumes[volume.Name] = true
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("%s mounts %s, which it does not have", name, mount.Name)
			}
		}
		for _, probe := range []*core.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe == nil && !strings.Contains(name, "ray") {
				t.Errorf("%s has no probe", name)
			}
		}
	}
	if containers := found["try-gateway"].Containers; len(containers) != 2 || containers[1].Name != "application" {
		t.Errorf("the application is not beside the gateway: %v", containers)
	}
}

// TestEveryWorkerHasAPortThatClientsReach holds for the default, and for a number that the table [serve] has.
func TestEveryWorkerHasAPortThatClientsReach(t *testing.T) {
	for workers, given := range map[int]values{
		4: {},
		2: {"server": values{"workers": 2.0}},
		3: {"server": values{"configuration": values{"workers": 3.0}}},
		5: {"server": values{"workers": 5.0, "configuration": values{"first_port": 7600.0}}},
	} {
		manifest, err := render(given)
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("workers = %d\n", workers); !strings.Contains(manifest, line) {
			t.Errorf("no %q in %s", line, manifest)
		}
		objects, err := read(manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			service, is := object.(*core.Service)
			if !is {
				continue
			}
			if !service.Spec.PublishNotReadyAddresses {
				t.Error("who drains is not reached")
			}
			for number, port := range service.Spec.Ports {
				due := 7480 + number
				if workers == 5 && number > 0 {
					due = 7599 + number
				}
				if int(port.Port) != due {
					t.Errorf("port %d is %d", number, port.Port)
				}
			}
			if len(service.Spec.Ports) != workers+1 {
				t.Errorf("%d ports for %d workers", len(service.Spec.Ports), workers)
			}
		}
	}
}

func TestStateKeyIsMountedWhereItIsNamed(t *testing.T) {
	for name, pod := range pods(t, everything) {
		environment := pod.Containers[0].Env
		if name == "try-dealer" || name == "try-ray-head" { // they keep no state
			continue
		}
		if len(environment) != 1 || environment[0].Value != "file:/run/privet/privet-state-key" {
			t.Errorf("%s: %v", name, environment)
		}
	}
	for name, pod := range pods(t, values{}) {
		if len(pod.Containers[0].Env) != 0 {
			t.Errorf("%s has a key that nobody gave", name)
		}
	}
}

func TestGatewayNeedsAServer(t *testing.T) {
	if _, err := render(values{"gateway": values{"enabled": true}}); err == nil || !strings.Contains(err.Error(), "gateway.server") {
		t.Errorf("got %v", err)
	}
}

// TestFieldsThatDoNotExistAreFound is the control: the same reader refuses a misspelt field.
func TestFieldsThatDoNotExistAreFound(t *testing.T) {
	manifest, err := render(values{})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"readOnlyRootFilesystem", "volumeClaimTemplates", "terminationGracePeriodSeconds"} {
		if _, err := read(strings.Replace(manifest, field, field+"s", 1)); err == nil {
			t.Errorf("%ss was not noticed", field)
		}
	}
}

func TestThePlainFileIsOfKubernetes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if objects, err := read(string(text)); err != nil || len(objects) != 2 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}
