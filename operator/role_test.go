package operator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// TestRoles shows the permissions of each role, in its own project and in others.
func TestRoles(t *testing.T) {
	// may lists the permitted actions. It writes "-" for an action that is refused as if the project
	// did not exist.
	may := func(roles ...operator.Membership) string {
		var is []string
		o := operator.Operator{Roles: roles}
		for _, action := range operator.Actions() {
			err := o.Check(action, "here")
			if err == nil {
				is = append(is, string(action))
			} else if errors.Is(err, problem.NotFound) {
				is = append(is, "-")
			}
		}
		return strings.Join(is, " ")
	}

	here := func(r operator.Role) operator.Membership { return operator.Membership{ProjectID: "here", Role: r} }
	everywhere := func(r operator.Role) operator.Membership { return operator.Membership{Role: r} }

	tests := []struct {
		roles []operator.Membership
		want  string
	}{
		{[]operator.Membership{everywhere(operator.Owner)},
			"read write delete_project make_project keep_operators keep_ring keep_backups"},
		{[]operator.Membership{everywhere(operator.Admin)}, "read write"},
		{[]operator.Membership{everywhere(operator.Viewer)}, "read"},
		{[]operator.Membership{here(operator.Owner)}, "read write delete_project"},
		{[]operator.Membership{here(operator.Admin)}, "read write"},
		{[]operator.Membership{here(operator.Viewer)}, "read"},
		{[]operator.Membership{everywhere(operator.Viewer), here(operator.Admin)}, "read write"},
		{[]operator.Membership{everywhere(operator.Admin), here(operator.Viewer)}, "read write"},
		{[]operator.Membership{{ProjectID: "there", Role: operator.Owner}}, "- - -"},
		{nil, "- - -"},
	}

	for _, tt := range tests {
		if got := may(tt.roles...); got != tt.want {
			t.Errorf("%v may %q, want %q", tt.roles, got, tt.want)
		}
	}
}
