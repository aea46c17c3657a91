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
	list := func(q page.Query) (page.Page[operator.Operator], error) {
		return a.Operators.Search(v.r.Context(), filter, q)
	}

	header := []string{"id", "email", "name", "roles", "disabled", "created"}
	return writeCSV(a.site, v, "operators", header, list, func(o operator.Operator) []string {
		var roles []string
		for _, m := range o.Roles {
			r := roleRowOf(m, projects)
			roles = append(roles, r.Role+" in "+r.Project)
		}
		return []string{o.ID, o.Email, o.Name, strings.Join(roles, ", "), strconv.FormatBool(o.Disabled),
			csvTime(o.Created)}
	})
}

// bulkOperators serves POST /dashboard/operators/bulk. The field do names the action for the
// selected operators. Operators cannot disable their own account here.
func (a *operatorPages) bulkOperators(v *visit) error {
	ctx := v.r.Context()
	p := bulkPage{Action: Prefix + "/operators/bulk", Back: Prefix + "/operators", Do: v.form.Get("do")}
	disabled := p.Do != "enable"
	if disabled {
		p.Do, p.Danger, p.changed = "disable", true, "operatorsdisabled"
		p.Title, p.Button = "Disable operators", "Disable operators"
		p.Text = "All their sessions end. They cannot sign in until you enable them. The last owner is left out."
	} else {
		p.Title, p.Button, p.changed = "Enable operators", "Enable operators", "operatorsenabled"
		p.Text = "These operators can sign in again."
	}

	p.nameOf = func(id string) (string, error) {
		o, err := a.Operators.Find(ctx, id)
		return o.Title(), err
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
