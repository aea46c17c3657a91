package dashboard

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// registrationTokenPages serves the pages that list, create and revoke initial access tokens.
type registrationTokenPages struct {
	*site
}

// A registrationTokenRow is a row in the list of initial access tokens.
type registrationTokenRow struct {
	fabric.RegistrationToken
	Title  string
	Status status
}

func (v *visit) registrationTokenRow(k fabric.RegistrationToken) registrationTokenRow {
	row := registrationTokenRow{
		RegistrationToken: k,
		Title:             cmp.Or(k.Name, k.Prefix+"…"),
		Status:            status{Kind: "good", Word: "Active"},
	}
	switch {
	case !k.Revoked.IsZero():
		row.Status = status{Kind: "bad", Word: "Revoked"}
	case k.IsUsedUp():
		row.Status = status{Word: "Used up"}
	case !k.IsUsable(v.now):
		row.Status = status{Word: "Expired"}
	}
	return row
}

// A registrationTokensPage lists initial access tokens, and has a form that creates one.
type registrationTokensPage struct {
	foundList[registrationTokenRow]
	Rule       choice // the project's rule for the registration of clients
	Accepts    bool   // whether the rule permits registration with tokens
	Endpoint   string
	Made       string // the token that was just created
	Name, Uses string
	Expires    string
	Faults     faults
}

// listRegistrationTokens serves GET /dashboard/projects/{project}/registration-tokens.
func (a *registrationTokenPages) listRegistrationTokens(v *visit) error {
	return a.registrationTokensPage(v, http.StatusOK, registrationTokensPage{})
}

func (a *registrationTokenPages) registrationTokensPage(v *visit, code int, p registrationTokensPage) error {
	f := v.finder("Name or id", "partner", "")
	found, err := a.Fabric.RegistrationTokens.Search(v.r.Context(), v.project.ID, f.Query, v.query())
	if err != nil {
		return err
	}
	p.foundList = foundList[registrationTokenRow]{listOf(v, found, v.registrationTokenRow), f}
	p.Rule = findChoice(clientRules, string(v.project.ClientRegistration))
	p.Accepts = v.project.ClientRegistration != fabric.ClientsOff
	p.Endpoint = a.AuthURL + "/oauth/register"
	return a.page(v, code, "Initial access tokens", "registration_tokens", p)
}

// createRegistrationToken serves POST /dashboard/projects/{project}/registration-tokens. The secret
// is shown only once.
func (a *registrationTokenPages) createRegistrationToken(v *visit) error {
	p := registrationTokensPage{Name: v.form.Get("name"), Uses: v.form.Get("uses"), Expires: v.form.Get("expires")}
	secret, err := a.newRegistrationToken(v, p)
	var wrong bool
	p.Faults, wrong = describeFaults(err, "name", "uses", "max_uses", "expires")
	if wrong {
		p.Faults = p.Faults.moved("max_uses", "uses")
		return a.registrationTokensPage(v, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	v.notice = "Initial access token created."
	return a.registrationTokensPage(v, http.StatusOK, registrationTokensPage{Made: secret})
}

// newRegistrationToken creates the token that a form describes, and returns its secret.
func (a *registrationTokenPages) newRegistrationToken(v *visit, p registrationTokensPage) (string, error) {
	life, ok := keyLifetimes[p.Expires]
	if !ok || life == 0 {
		return "", problem.BadParam("expires", "unknown lifetime")
	}
	in := fabric.RegistrationTokenInput{Name: p.Name, Expires: v.now.Add(life)}
	if p.Uses != "" {
		var err error
		if in.MaxUses, err = strconv.ParseInt(p.Uses, 10, 64); err != nil {
			return "", problem.BadParam("uses", "the number of clients must be a whole number")
		}
	}
	_, secret, err := a.Fabric.RegistrationTokens.Create(v.r.Context(), v.project.ID, in, nil)
	return secret, err
}

// revokeRegistrationToken serves POST
// /dashboard/projects/{project}/registration-tokens/{id}/revoke.
func (a *registrationTokenPages) revokeRegistrationToken(v *visit) error {
	if err := a.Fabric.RegistrationTokens.Revoke(v.r.Context(), v.project.ID, v.r.PathValue("id")); err != nil {
		return err
	}
	return v.redirect(v.base() + "/registration-tokens?done=tokenrevoked")
}
