package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/suggest"
)

// Services lists the services to run.
type Services []string

// These are the services that a node can run.
const (
	IDP        = "idp"
	Fabric     = "fabric"
	Relay      = "relay"
	Recordings = "recordings"
	Dashboard  = "dashboard"
)

// AllServices lists all services.
var AllServices = []string{IDP, Fabric, Relay, Recordings, Dashboard}

func (s *Services) UnmarshalText(text []byte) error {
	*s = split(string(text))
	for _, name := range *s {
		if !slices.Contains(AllServices, name) {
			return fmt.Errorf("has no service %q%s", name,
				suggest.MeantOr(name, AllServices, "there are "+strings.Join(AllServices, ", ")))
		}
	}
	if len(*s) == 0 {
		return fmt.Errorf("needs at least one of %s", strings.Join(AllServices, ", "))
	}
	return nil
}

// Has reports whether s contains the service.
func (s Services) Has(name string) bool { return slices.Contains(s, name) }

// All reports whether s contains all services that clients of the APIs need.
func (s Services) All() bool { return len(s.missing()) == 0 }

// missing lists the services that clients of the APIs need and s lacks. The dashboard is not one of
// them, because operators can use the command line instead.
func (s Services) missing() []string {
	return slices.DeleteFunc(slices.Clone(AllServices), func(name string) bool {
		return s.Has(name) || name == Dashboard
	})
}
