package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/operator"
)

// rulePages show and change the rules of a project.
type rulePages struct {
	*site
}

// The rules of a project, as they are chosen.
var (
	registrations = []choice{
		{Value: string(fabric.RegistrationOff), Title: "Others make accounts",
			Why: "An operator, the API or an invitation."},
		{Value: string(fabric.RegistrationOpen), Title: "People make their own",
			Why: "Whoever reads mail at an address makes their own account on the sign-in page."},
	}
	factorRules = []choice{
		{Value: "no", Title: "Those who have one",
			Why: "Whoever has set up nothing else signs in with a password alone."},
		{Value: "yes", Title: "Everybody",
			Why: "Who has none sets a passkey or an authenticator app up on the way in."},
	}
	mediaRules = []choice{
		{Value: "public", Title: "Whoever has its address",
			Why: "As clients of recordings expect; the address cannot be guessed."},
		{Value: "basic", Title: "Who has credentials", Why: "Whoever may see the recording."},
		{Value: "signed", Title: "Who has credentials or a signed link", Why: "A link holds for 30 days at most."},
	}
)

// A rulesPage shows the rules of a project, or the form that changes them.
type rulesPage struct {
	Base                         string
	Registration, Factors, Media choice
	MayChange                    bool
	Form                         form
}

// showRules serves GET /dashboard/projects/{project}/rules.
func (a *rulePages) showRules(v *visit) error {
	return a.page(v, http.StatusOK, "Rules", "policies", rulesPage{
		Base: v.base(), Registration: one(registrations, string(v.project.Registration)),
		Factors: one(factorRules, yesOrNo(v.project.RequireFactor)),
		Media:   one(mediaRules, v.project.MediaAuth), MayChange: v.mayIn(operator.Write),
	})
}

func one(all []choice, value string) choice {
	for _, c := range all {
		if c.Value == value {
			return c
		}
	}
	return choice{Value: value, Title: value}
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// editRules serves GET /dashboard/projects/{project}/rules/edit.
func (a *rulePages) editRules(v *visit) error {
	return a.page(v, http.StatusOK, "Change the rules", "policies_form",
		rulesPage{Base: v.base(), Form: v.rulesForm()})
}

func (v *visit) rulesForm() form {
	inputs := []input{
		{Kind: "cards", Name: "registration", Label: "Who makes accounts",
			Options: chosen(registrations, string(v.project.Registration))},
		{Kind: "cards", Name: "require_factor", Label: "Who needs a second factor",
			Options: chosen(factorRules, yesOrNo(v.project.RequireFactor))},
		{Kind: "cards", Name: "media_auth", Label: "Who may fetch the sound of recordings",
			Options: chosen(mediaRules, v.project.MediaAuth)},
	}
	return form{Inputs: inputs, Seen: marks(inputs)}
}

// rulesChange reads a form: what differs from what is there.
func (v *visit) rulesChange() (c fabric.ProjectChange, err error) {
	if r := fabric.Registration(v.form.Get("registration")); v.form.Has("registration") &&
		r != v.project.Registration {
		c.Registration = &r
	}
	if text := v.form.Get("require_factor"); v.form.Has("require_factor") && text != yesOrNo(v.project.RequireFactor) {
		needed := text == "yes"
		if c.RequireFactor = &needed; !needed && text != "no" {
			err = problem.BadParam("require_factor", "require_factor must be yes or no")
		}
	}
	if media := v.form.Get("media_auth"); v.form.Has("media_auth") && media != v.project.MediaAuth {
		c.MediaAuth = &media
	}
	return c, err
}

// saveRules serves POST /dashboard/projects/{project}/rules/edit. What the form does not
// have stays as it is.
func (a *rulePages) saveRules(v *visit) error {
	p := rulesPage{Base: v.base(), Form: v.rulesForm()}
	err := v.merge(p.Form.Inputs)
	var c fabric.ProjectChange
	if err == nil {
		c, err = v.rulesChange()
	}
	if err == nil {
		_, err = a.Fabric.Projects.Update(v.r.Context(), v.project.ID, c)
	}
	if p.Form.blame(err) {
		retype(p.Form.Inputs, v.form)
		return a.page(v, http.StatusUnprocessableEntity, "Change the rules", "policies_form", p)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.base() + "/rules?done=changed")
}
