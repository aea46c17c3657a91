package dashboard

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/operator"
)

// An invitationRow is a row in the list of open invitations.
type invitationRow struct {
	operator.Link
	Title  string
	By     string // who sent the invitation
	URL    string
	Role   roleRow
	Status status
}

// invitationsOf returns all invitations that nobody has accepted. The list is not paginated,
// because an invitation on a later page is easily overlooked. The list stays short, because each
// invitation lasts one day.
func (a *operatorPages) invitationsOf(v *visit, projects []fabric.Project) (rows []invitationRow, err error) {
	found, err := page.Every(v.r.Context(), a.Operators.Invitations)
	if err != nil {
		return nil, err
	}
	var roles []operator.Membership
	for _, link := range found {
		roles = append(roles, link.Role)
	}
	projects, err = a.addProjects(v, projects, roles...)
	if err != nil {
		return nil, err
	}

	for _, link := range found {
		row := invitationRow{
			Link:   link,
			Title:  cmp.Or(link.Email, "Anyone with the link"),
			By:     cmp.Or(link.MadeBy, "Command line"),
			URL:    Prefix + "/operators/invitations/" + link.ID,
			Role:   roleRowOf(link.Role, projects),
			Status: status{Kind: "warn", Word: "Pending"},
		}
		if link.IsOver(v.now) {
			row.Status = status{Kind: "bad", Word: "Expired"}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// An inviteForm is the content of the page that invites an operator: the form or, once the
// invitation exists, its link.
type inviteForm struct {
	Email   string
	Roles   []choice
	Link    string // "" until the link is created
	Renewed bool   // whether the link replaces a previous one
	Faults  faults
	projectChoice
}

// showInvite serves GET /dashboard/operators/invite. The form's default is the weakest useful role:
// viewer of the project that was visited last.
func (a *operatorPages) showInvite(v *visit) error {
	projects, err := a.projectsOf(v)
	if err != nil {
		return err
	}
	last, err := a.lastProject(v, projects)
	if err != nil {
		return err
	}
	weakest := operator.Membership{Role: operator.Viewer, ProjectID: last.ID}
	return a.showInviteForm(v, http.StatusOK, inviteForm{}, weakest)
}

// showInviteForm shows a form with the given role selected.
func (a *operatorPages) showInviteForm(v *visit, status int, p inviteForm, m operator.Membership) error {
	var err error
	p.projectChoice, err = a.projectChoices(v, m.ProjectID)
	if err != nil {
		return err
	}
	p.Roles = roleChoices(string(m.Role))
	return a.page(v, status, "Invite an operator", "operator_invite", p)
}

// invite serves POST /dashboard/operators/invite. The link is shown only once.
func (a *operatorPages) invite(v *visit) error {
	role, _ := operator.ParseRole(v.form.Get("role")) // Invite rejects an unknown role
	m := operator.Membership{Role: role, ProjectID: v.form.Get("project")}
	p := inviteForm{Email: v.form.Get("email")}
	if p.Email == "" {
		p.Faults = faultAt("email", "Email is required.")
		return a.showInviteForm(v, http.StatusUnprocessableEntity, p, m)
	}
	projectID, err := a.sentProject(v)
	if wrong, ok := describeFaults(err, otherProject); ok {
		p.Faults = wrong
		return a.showInviteForm(v, http.StatusUnprocessableEntity, p, m)
	}
	if err != nil {
		return err
	}

	m.ProjectID = projectID
	_, token, err := a.Operators.Invite(v.r.Context(), p.Email, m, v.operator.Email)
	if wrong, ok := describeFaults(err, "email", "role", "project"); ok {
		p.Faults = wrong
		return a.showInviteForm(v, http.StatusUnprocessableEntity, p, m)
	}
	if err != nil {
		return err
	}
	p.Link = a.setupURL(token)
	return a.showInviteForm(v, http.StatusOK, p, m)
}

// renewInvitation serves POST /dashboard/operators/invitations/{id}/renew. It replaces the
// invitation's link with a new one, which is shown only once.
func (a *operatorPages) renewInvitation(v *visit) error {
	link, token, err := a.Operators.Renew(v.r.Context(), v.r.PathValue("id"), v.operator.Email)
	if err != nil {
		return err
	}
	p := inviteForm{Email: link.Email, Link: a.setupURL(token), Renewed: true}
	return a.showInviteForm(v, http.StatusOK, p, link.Role)
}

// withdrawInvitation serves POST /dashboard/operators/invitations/{id}/withdraw.
func (a *operatorPages) withdrawInvitation(v *visit) error {
	if _, err := a.Operators.Withdraw(v.r.Context(), v.r.PathValue("id")); err != nil {
		return err
	}
	return v.redirect(Prefix + "/operators?done=withdrawn")
}

// setupURL returns the link that an operator opens to set a password.
func (a *operatorPages) setupURL(token string) string {
	return a.PublicURL + Prefix + "/setup?" + url.Values{"token": {token}}.Encode()
}
