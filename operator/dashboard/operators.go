package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/operator"
)

// operatorPages serves the pages that invite, show, change and delete operators.
type operatorPages struct {
	*site
	trail        *trail
	Clients      *idp.Provider
	SecretsShown func(ctx context.Context, operatorID string) ([]audit.Event, error) // nil hides all secrets
}

// An operatorRow is a row in the list of operators.
type operatorRow struct {
	operator.Operator
	Title  string
	URL    string
	Roles  []roleRow
	Status status
	Self   bool // whether the row is about the operator who views it
}

// A roleRow is a role with the name of its project.
type roleRow struct{ Role, Project string }

// roleRowOf returns the row for a role, with the name of the project in projects.
func roleRowOf(m operator.Membership, projects []fabric.Project) roleRow {
	r := roleRow{Role: string(m.Role), Project: cmp.Or(m.ProjectID, "every project")}
	for _, p := range projects {
		if p.ID == m.ProjectID {
			r.Project = p.Name
		}
	}
	return r
}

// operatorRowOf returns the row of an operator. projects are those that the reader may see.
func operatorRowOf(v *visit, o operator.Operator, projects []fabric.Project) operatorRow {
	row := operatorRow{
		Operator: o,
		Title:    o.Title(),
		URL:      Prefix + "/operators/" + o.ID,
		Status:   status{Kind: "good", Word: "Active"},
		Self:     o.ID == v.operator.ID,
	}
	for _, m := range o.Roles {
		row.Roles = append(row.Roles, roleRowOf(m, projects))
	}
	switch {
	case o.Disabled:
		row.Status = status{Kind: "bad", Word: "Disabled"}
	case o.PasswordHash == "":
		row.Status = status{Kind: "warn", Word: "No password yet"}
	}
	return row
}

// operatorStates are the options of the filter by state.
var operatorStates = []choice{{Value: "no", Title: "Enabled"}, {Value: "yes", Title: "Disabled"}}

// operatorFinder returns the search form of the list of operators, and the filter that it
// describes.
func (v *visit) operatorFinder() (finder, operator.Filter) {
	state := v.choiceFilter("disabled", "State", "Any state", operatorStates)
	search := v.finder("Name or email", "ann@example.com", "", state).exportable(v)
	filter := operator.Filter{Text: search.Query}
	if chosen := search.chosen("disabled"); chosen != "" {
		disabled := chosen == "yes"
		filter.Disabled = &disabled
	}
	return search, filter
}

// An operatorListPage is the list of operators and of open invitations.
type operatorListPage struct {
	foundList[operatorRow]
	Invitations []invitationRow
}

// listOperators serves GET /dashboard/operators.
func (a *operatorPages) listOperators(v *visit) error {
	search, filter := v.operatorFinder()
	found, err := a.Operators.Search(v.r.Context(), filter, v.query())
	if err != nil {
		return err
	}
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}

	projects, err = a.addProjects(v, projects, rolesOf(found.Items)...)
	if err != nil {
		return err
	}

	invitations, err := a.invitationsOf(v, projects)
	if err != nil {
		return err
	}

	row := func(o operator.Operator) operatorRow { return operatorRowOf(v, o, projects) }
	return a.page(v, http.StatusOK, "Operators", "operators", operatorListPage{
		foundList:   foundList[operatorRow]{list: listOf(v, found, row), Finder: search},
		Invitations: invitations,
	})
}

// rolesOf returns the roles of all operators.
func rolesOf(all []operator.Operator) (roles []operator.Membership) {
	for _, o := range all {
		roles = append(roles, o.Roles...)
	}
	return roles
}

// roleTitles describes each role in one word.
var roleTitles = map[operator.Role]string{
	operator.Owner:  "Owner",
	operator.Admin:  "Admin",
	operator.Viewer: "Viewer",
}

// aboutRoles describes what each role may do.
var aboutRoles = map[operator.Role]string{
	operator.Owner:  "Can do everything, including managing operators and deleting projects.",
	operator.Admin:  "Can change everything in a project, but not delete it or manage operators.",
	operator.Viewer: "Can see everything in a project except secrets and tokens, and change nothing.",
}

// roleChoices returns the roles as options of a form.
func roleChoices(chosen string) (choices []choice) {
	for _, r := range operator.Roles() {
		choices = append(choices, choice{
			Value:  string(r),
			Title:  roleTitles[r],
			Why:    aboutRoles[r],
			Chosen: string(r) == chosen,
		})
	}
	return choices
}

// An operatorPage shows one operator.
type operatorPage struct {
	Operator operatorRow
	Choices  []choice
	Known    knownSecrets
	Link     string
	Seen     string // digest of the roles; see rolesMark
	Faults   faults
	projectChoice
}

// showOperator serves GET /dashboard/operators/{id}.
func (a *operatorPages) showOperator(v *visit) error {
	return a.operatorPage(v, http.StatusOK, operatorPage{})
}

func (a *operatorPages) operatorPage(v *visit, status int, p operatorPage) error {
	o, err := a.Operators.Find(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	projects, err = a.addProjects(v, projects, o.Roles...)
	if err != nil {
		return err
	}

	p.Operator = operatorRowOf(v, o, projects)
	p.Known, err = a.secretsOf(v, o)
	if err != nil {
		return err
	}
	var role operator.Membership
	if len(o.Roles) > 0 {
		role = o.Roles[0]
	}
	if len(p.Faults) > 0 && v.form.Has("role") {
		role = sentRole(v.form)
	}

	p.Seen = rolesMark(o)
	p.Choices = roleChoices(string(role.Role))
	p.projectChoice, err = a.projectChoices(v, role.ProjectID)
	if err != nil {
		return err
	}
	return a.page(v, status, p.Operator.Title, "operator", p)
}

// rolesMark returns a digest of an operator's roles. The form that replaces the roles contains it
// in the field "seen".
func rolesMark(o operator.Operator) string {
	roles := make([]string, len(o.Roles))
	for i, m := range o.Roles {
		roles[i] = string(m.Role) + " " + m.ProjectID
	}
	return digestOf(roles)
}

// sentRole returns the role in a form. The role may be unknown.
func sentRole(form url.Values) operator.Membership {
	return operator.Membership{Role: operator.Role(form.Get("role")), ProjectID: form.Get("project")}
}

// change updates an operator. If the change is refused, the operator's page shows the reason.
func (a *operatorPages) change(v *visit, in operator.Input, done string) error {
	_, err := a.Operators.Update(v.r.Context(), v.r.PathValue("id"), in, "")
	if wrong, ok := describeFaults(err); ok {
		return a.operatorPage(v, http.StatusUnprocessableEntity, operatorPage{Faults: wrong})
	}
	if err != nil {
		return err
	}
	return v.redirect(Prefix + "/operators/" + v.r.PathValue("id") + "?done=" + done)
}

// changeRole serves POST /dashboard/operators/{id}/role. The new role replaces all current ones.
func (a *operatorPages) changeRole(v *visit) error {
	m := sentRole(v.form)
	if _, ok := operator.ParseRole(string(m.Role)); !ok {
		return problem.BadParam("role", "unknown role")
	}
	var err error
	m.ProjectID, err = a.sentProject(v)
	if wrong, ok := describeFaults(err, otherProject); ok {
		return a.operatorPage(v, http.StatusUnprocessableEntity, operatorPage{Faults: wrong})
	}
	if err != nil {
		return err
	}
	o, err := a.Operators.Find(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	roles := []operator.Membership{m}
	if v.form.Get("seen") != rolesMark(o) && !slices.Equal(o.Roles, roles) {
		wrong := faultAt("", "Somebody else changed the roles since you opened this page. Save again to replace them.")
		return a.operatorPage(v, http.StatusUnprocessableEntity, operatorPage{Faults: wrong})
	}
	return a.change(v, operator.Input{Roles: roles}, "role")
}

// disableOperator serves POST /dashboard/operators/{id}/disable.
func (a *operatorPages) disableOperator(v *visit) error {
	disabled := true
	return a.confirmEmail(v, "confirm-disable", func() error {
		return a.change(v, operator.Input{Disabled: &disabled}, "operatordisabled")
	})
}

// enableOperator serves POST /dashboard/operators/{id}/enable.
func (a *operatorPages) enableOperator(v *visit) error {
	disabled := false
	return a.change(v, operator.Input{Disabled: &disabled}, "operatorenabled")
}

// confirmEmail calls do if the email that was typed into the form is the operator's email. field is
// the id of the input for the email.
func (a *operatorPages) confirmEmail(v *visit, field string, do func() error) error {
	o, err := a.Operators.Find(v.r.Context(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.form.Get("confirm") != o.Email {
		wrong := faultAt(field, "The email does not match. Nothing was changed.")
		return a.operatorPage(v, http.StatusUnprocessableEntity, operatorPage{Faults: wrong})
	}
	return do()
}

// recoverOperator serves POST /dashboard/operators/{id}/link. It creates a link that lets the
// operator set a new password.
func (a *operatorPages) recoverOperator(v *visit) error {
	_, token, err := a.Operators.Recover(v.r.Context(), v.r.PathValue("id"), v.operator.Email)
	if err != nil {
		return err
	}
	return a.operatorPage(v, http.StatusOK, operatorPage{Link: a.setupURL(token)})
}

// deleteOperator serves POST /dashboard/operators/{id}/delete. It first revokes the secrets
// selected in the form.
func (a *operatorPages) deleteOperator(v *visit) error {
	return a.confirmEmail(v, "confirm-delete", func() error {
		o, err := a.Operators.Find(v.r.Context(), v.r.PathValue("id"))
		if err != nil {
			return err
		}
		if v.form.Has("end") {
			err = a.disableAndRevoke(v, o)
		}
		if err == nil {
			err = a.Operators.Delete(v.r.Context(), o.ID)
		}

		if errors.Is(err, problem.Conflict) {
			wrong, _ := describeFaults(err)
			return a.operatorPage(v, http.StatusUnprocessableEntity, operatorPage{Faults: wrong})
		}
		if err != nil {
			return err
		}
		return v.redirect(Prefix + "/operators?done=operatordeleted")
	})
}

// disableAndRevoke revokes the secrets selected in the form, before an operator is deleted. It
// disables the operator first, so that no new secrets can be created in the meantime. If revoking
// fails, the operator is not deleted, and the operator's page shows the remaining secrets.
func (a *operatorPages) disableAndRevoke(v *visit, o operator.Operator) error {
	disabled := true
	_, err := a.Operators.Update(v.r.Context(), o.ID, operator.Input{Disabled: &disabled}, "")
	if err != nil {
		return err
	}
	if err := a.endSecrets(v, o); err != nil {
		web.LogInternal(v.r, a.Log, err)
		return problem.New(problem.Conflict, "not_ended", "the operator is disabled but not deleted: "+
			"the selected secrets could not all be revoked, and those still valid are listed. Try again.")
	}
	return nil
}
