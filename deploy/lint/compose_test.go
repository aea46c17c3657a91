package lint

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestCompose loads the compose file with Compose's own library, which checks the file against the
// schema. It also checks that the server has only the rights that it needs, that no port is open to
// the network, and how many services there are.
func TestCompose(t *testing.T) {
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: "../compose",
		ConfigFiles: []types.ConfigFile{{Filename: "../compose/compose.yaml"}},
		Environment: types.Mapping{"S3_ACCESS_KEY": "x", "S3_SECRET_KEY": "y"}})
	if err != nil {
		t.Fatal(err)
	}

	s := project.Services["selvage"]
	if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) != 1 {
		t.Errorf("the server has more rights than it needs: %+v", s)
	}

	for _, p := range s.Ports {
		if p.HostIP != "127.0.0.1" {
			t.Errorf("port %s is open to the network", p.Published)
		}
	}

	for _, name := range project.ServiceNames() {
		if name != "selvage" && len(project.Services[name].Ports) > 0 {
			t.Errorf("%s is open to the machine", name)
		}
	}

	if len(project.Services) != 11 {
		t.Errorf("%d services, want the server, PostgreSQL, six Redis, an object store, and two that prepare them",
			len(project.Services))
	}
}
