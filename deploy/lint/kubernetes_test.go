package lint

import (
	"bytes"
	"os"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds maps the kinds in the manifests to Kubernetes' own types.
var kinds = map[string]func() any{
	"v1 ServiceAccount":                      func() any { return new(core.ServiceAccount) },
	"v1 ConfigMap":                           func() any { return new(core.ConfigMap) },
	"v1 PersistentVolumeClaim":               func() any { return new(core.PersistentVolumeClaim) },
	"v1 Service":                             func() any { return new(core.Service) },
	"apps/v1 Deployment":                     func() any { return new(apps.Deployment) },
	"networking.k8s.io/v1 Ingress":           func() any { return new(networking.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":     func() any { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":          func() any { return new(policy.PodDisruptionBudget) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() any { return new(autoscaling.HorizontalPodAutoscaler) },
}

// TestKubernetes decodes each manifest into Kubernetes' own type, which rejects unknown fields and
// values of the wrong type. It also checks that the container has only the rights that it needs,
// and reads secrets from files. It checks the probes, the volumes and the target of the autoscaler,
// too.
func TestKubernetes(t *testing.T) {
	raw, err := os.ReadFile("../kubernetes/selvage.yaml")
	if err != nil {
		t.Fatal(err)
	}

	seen := make(map[string]any)
	for _, doc := range bytes.Split(raw, []byte("\n---\n")) {
		var head v1.TypeMeta
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		name := head.APIVersion + " " + head.Kind
		make, ok := kinds[name]
		if !ok {
			t.Fatalf("the test does not know the kind %s", name)
		}
		object := make()
		if err := yaml.UnmarshalStrict(doc, object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		seen[head.Kind] = object
	}

	if len(seen) != len(kinds) {
		t.Errorf("%d of %d kinds are in the manifests", len(seen), len(kinds))
	}

	pod := seen["Deployment"].(*apps.Deployment).Spec.Template.Spec
	c := pod.Containers[0]
	switch s := c.SecurityContext; {
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation,
		s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem,
		pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot,
		len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL":
		t.Errorf("the container has more rights than it needs: %+v", s)
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Error("the probes do not use the paths of the ops listener")
	}

	mounted := make(map[string]bool)
	for _, v := range pod.Volumes {
		mounted[v.Name] = true
	}

	for _, m := range c.VolumeMounts {
		if !mounted[m.Name] {
			t.Errorf("the volume %s is missing", m.Name)
		}
	}

	if !strings.HasPrefix(c.Env[0].Value, "/run/secrets/selvage/") {
		t.Error("secrets are not read from files")
	}
	if target := seen["HorizontalPodAutoscaler"].(*autoscaling.HorizontalPodAutoscaler).Spec.ScaleTargetRef; target.
		Name != seen["Deployment"].(*apps.Deployment).Name {
		t.Errorf("the autoscaler scales %s, want the Deployment", target.Name)
	}
}
