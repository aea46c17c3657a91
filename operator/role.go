package operator

import (
	"errors"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// A Role is what an operator may do.
type Role string

// The roles, the mightiest first.
const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Viewer Role = "viewer"
)

// Roles lists them.
func Roles() []Role { return []Role{Owner, Admin, Viewer} }

// ParseRole reads the name of a role.
func ParseRole(name string) (Role, bool) {
	r := Role(strings.ToLower(strings.TrimSpace(name)))
	return r, slices.Contains(Roles(), r)
}

// An Action is a kind of thing that operators do.
type Action string

// The actions.
const (
	Read          Action = "read"           // see what there is, without secrets
	Write         Action = "write"          // make, change, mint, revoke and delete what is in a project
	DeleteProject Action = "delete_project" // delete a project with all that is in it
	MakeProject   Action = "make_project"   // make another project
	KeepOperators Action = "keep_operators" // see, invite, change and remove operators
	KeepRing      Action = "keep_ring"      // rotate and retire the keys of the installation
)

// allowed is the table of what each role may do. docs/security.md shows it.
var allowed = map[Action][]Role{
	Read:          {Owner, Admin, Viewer},
	Write:         {Owner, Admin},
	DeleteProject: {Owner},
	MakeProject:   {Owner},
	KeepOperators: {Owner},
	KeepRing:      {Owner},
}

// installation are the actions for which a role in every project is needed.
var installation = []Action{MakeProject, KeepOperators, KeepRing}

// Actions lists them, in the order of the table.
func Actions() []Action {
	return []Action{Read, Write, DeleteProject, MakeProject, KeepOperators, KeepRing}
}

// May reports whether a role allows an action.
func (r Role) May(a Action) bool { return slices.Contains(allowed[a], r) }

// In returns the role that the operator has in a project; that of the project goes
// before that of the installation where it is the mightier. "" is none. A projectID of
// "" asks for the installation.
func (o Operator) In(projectID string) Role {
	for _, r := range Roles() {
		if slices.ContainsFunc(o.Roles, func(m Membership) bool {
			return m.Role == r && (m.ProjectID == "" || m.ProjectID == projectID)
		}) {
			return r
		}
	}
	return ""
}

// Sees reports whether the operator may know that a project is there.
func (o Operator) Sees(projectID string) bool { return o.In(projectID) != "" }

// Check reports why an operator may not do something in a project. One in which it has
// no role is problem.NotFound, like any that is not there; else what its role does not
// allow is problem.Forbidden.
func (o Operator) Check(a Action, projectID string) error {
	if slices.Contains(installation, a) {
		projectID = ""
	} else if !o.Sees(projectID) {
		return problem.NoSuch("project")
	}
	if o.Disabled || !o.In(projectID).May(a) {
		return problem.New(problem.Forbidden, "forbidden", "your role does not allow this")
	}
	return nil
}

// checkRoles reports what is wrong with the roles of an operator.
func checkRoles(roles []Membership) error {
	if len(roles) == 0 {
		return problem.Missing("role")
	}
	var errs []error
	seen := make(map[string]bool)
	for _, m := range roles {
		if !slices.Contains(Roles(), m.Role) {
			errs = append(errs, problem.BadParam("role", "role must be owner, admin or viewer"))
		}
		if seen[m.ProjectID] {
			errs = append(errs, problem.BadParam("role", "an operator has one role in a project"))
		}
		seen[m.ProjectID] = true
	}
	return errors.Join(errs...)
}
