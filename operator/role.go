package operator

import (
	"errors"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// A Role determines what an operator may do.
type Role string

// These are the roles, most powerful first.
const (
	Owner  Role = "owner"
	Admin  Role = "admin"
	Viewer Role = "viewer"
)

// Roles returns all roles, most powerful first.
func Roles() []Role { return []Role{Owner, Admin, Viewer} }

// ParseRole returns the role with the given name in upper or lower case. ok is false for unknown names.
func ParseRole(name string) (role Role, ok bool) {
	r := Role(strings.ToLower(strings.TrimSpace(name)))
	return r, slices.Contains(Roles(), r)
}

// An Action is something that an operator may do if their role allows it.
type Action string

// These are the actions that roles allow.
const (
	Read          Action = "read"           // see a project, except its secrets
	Write         Action = "write"          // create, change, issue, revoke and delete rows of a project
	DeleteProject Action = "delete_project" // delete a project and everything in it
	MakeProject   Action = "make_project"   // create a project
	KeepOperators Action = "keep_operators" // see, invite, change and remove operators
	KeepRing      Action = "keep_ring"      // rotate and retire the keys of the installation
	KeepBackups   Action = "keep_backups"   // see, create and check backups
)

// allowed lists the roles that may perform each action. docs/security.md contains the same table.
var allowed = map[Action][]Role{
	Read:          {Owner, Admin, Viewer},
	Write:         {Owner, Admin},
	DeleteProject: {Owner},
	MakeProject:   {Owner},
	KeepOperators: {Owner},
	KeepRing:      {Owner},
	KeepBackups:   {Owner},
}

// installation lists the actions that require a role in the installation.
var installation = []Action{MakeProject, KeepOperators, KeepRing, KeepBackups}

// Actions returns all actions, in the order of their table in docs/security.md.
func Actions() []Action {
	return []Action{Read, Write, DeleteProject, MakeProject, KeepOperators, KeepRing, KeepBackups}
}

// May reports whether the role allows an action.
func (r Role) May(a Action) bool { return slices.Contains(allowed[a], r) }

// In returns the operator's role in a project. This is the more powerful of the roles in that
// project and in the installation, or "" if there is none. If projectID is "", In returns the role
// in the installation.
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

// Sees reports whether the operator may know that a project exists.
func (o Operator) Sees(projectID string) bool { return o.In(projectID) != "" }

// Check returns nil if the operator may perform an action in a project. If the operator has no role
// in the project, it returns problem.NotFound, as for a missing project. Otherwise it returns
// problem.Forbidden.
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

// checkRoles returns everything that is wrong with the roles of an operator.
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
			errs = append(errs, problem.BadParam("role", "an operator can have only one role in a project"))
		}
		seen[m.ProjectID] = true
	}
	return errors.Join(errs...)
}
