package dashboard

import (
	"strconv"
	"strings"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// exportOperators serves GET /dashboard/operators/export.
func (a *operatorPages) exportOperators(v *visit) error {
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}

	_, filter := v.operatorFinder()
	list := func(query page.Query) (page.Page[operator.Operator], error) {
		found, err := a.Operators.Search(v.r.Context(), filter, query)
		if err != nil {
			return found, err
		}
		projects, err = a.addProjects(v, projects, rolesOf(found.Items)...)
		return found, err
	}
	line := func(o operator.Operator) []string {
		var roles []string
		for _, m := range o.Roles {
			r := roleRowOf(m, projects)
			roles = append(roles, r.Role+" in "+r.Project)
		}
		disabled := strconv.FormatBool(o.Disabled)
		return []string{o.ID, o.Email, o.Name, strings.Join(roles, ", "), disabled, csvTime(o.Created)}
	}
	header := []string{"id", "email", "name", "roles", "disabled", "created"}
	return writeCSV(a.site, v, "operators", header, list, line)
}

// bulkOperators serves POST /dashboard/operators/bulk. The field do names the action for the
// selected operators. Operators cannot disable their own account here.
func (a *operatorPages) bulkOperators(v *visit) error {
	ctx := v.r.Context()
	disabled := v.form.Get("do") != "enable"
	p := bulkPage{
		Do:      "enable",
		Title:   "Enable operators",
		Button:  "Enable operators",
		Text:    "These operators can sign in again.",
		changed: "operatorsenabled",
	}
	if disabled {
		p = bulkPage{
			Do:      "disable",
			Title:   "Disable operators",
			Button:  "Disable operators",
			Danger:  true,
			Text:    "All their sessions end. They cannot sign in until you enable them. The last owner is left out.",
			changed: "operatorsdisabled",
		}
	}
	p.Action, p.Back = Prefix+"/operators/bulk", Prefix+"/operators"

	p.nameOf = func(id string) (string, error) {
		o, err := a.Operators.Find(ctx, id)
		if err != nil {
			return "", err
		}
		return o.Title(), nil
	}

	p.change = func(id string) error {
		o, err := a.Operators.Find(ctx, id)
		if err != nil {
			return err
		}
		if disabled && o.ID == v.operator.ID {
			return problem.New(problem.Conflict, "own_account", "operators cannot disable themselves")
		}
		_, err = a.Operators.Update(ctx, o.ID, operator.Input{Disabled: &disabled}, "")
		return err
	}
	return a.bulk(v, p)
}
