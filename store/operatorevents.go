package store

import (
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/operator"
)

func operatorEvent(action string, o operator.Operator) audit.Event {
	return audit.Of(action, "", "operator", o.ID).With(
		"email", o.Email, "roles", rolesOf(o.Roles), "disabled", strconv.FormatBool(o.Disabled))
}

// operatorChange names what a change writes, and says it where that is a right. What
// somebody would look for has an action of its own.
func operatorChange(id string, c operator.Change) audit.Event {
	var names []string
	if c.Name != nil {
		names = append(names, "name")
	}
	if c.PasswordHash != nil {
		names = append(names, "password")
	}
	if c.Disabled != nil {
		names = append(names, "disabled="+strconv.FormatBool(*c.Disabled))
	}
	if c.Roles != nil {
		names = append(names, "roles")
	}
	action := "operator.updated"
	switch {
	case c.PasswordHash != nil:
		action = "operator.password_changed"
	case c.Disabled != nil && *c.Disabled:
		action = "operator.disabled"
	case c.Disabled != nil:
		action = "operator.enabled"
	case c.Roles != nil:
		action = "operator.roles_changed"
	}
	return audit.Of(action, "", "operator", id).With("changed", strings.Join(names, " "), "roles", rolesOf(c.Roles))
}

func linkEvent(action string, l operator.Link) audit.Event {
	return audit.Of(action, l.Role.ProjectID, "operator", l.OperatorID).
		With("link", l.ID, "email", l.Email, "role", string(l.Role.Role), "made_by", l.MadeBy, "expires",
			date(l.Expires))
}

// rolesOf writes roles, each with its project, or alone where it is for all.
func rolesOf(all []operator.Membership) string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = string(m.Role)
		if m.ProjectID != "" {
			names[i] += "@" + m.ProjectID
		}
	}
	return strings.Join(names, " ")
}
