package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
)

// An endpointPart is the part of a resource's page about the phones of a SIP endpoint.
type endpointPart struct {
	Username    string
	HasPassword bool
	Password    string // set if the password was just created, because it is shown only once
}

// endpointPartOf returns the part for a SIP endpoint, or nil for resources of other kinds.
func endpointPartOf(r fabric.Resource, password string) *endpointPart {
	if r.Type != fabric.EndpointKind {
		return nil
	}
	return &endpointPart{Username: r.DisplayName, HasPassword: r.Secrets != "", Password: password}
}

// makePassword serves POST /dashboard/projects/{project}/resources/{id}/password.
func (a *resourcePages) makePassword(v *visit) error { return a.newPassword(v, v.r.PathValue("id")) }

// newPassword creates a password for a SIP endpoint, and shows it on the endpoint's page.
func (a *resourcePages) newPassword(v *visit, id string) error {
	made, err := a.Fabric.Endpoints.NewPassword(v.r.Context(), v.project.ID, id)
	if err != nil {
		return err
	}

	t, err := a.Fabric.Resources.FindThing(v.r.Context(), v.project.ID, id)
	if err != nil {
		return err
	}
	if t.Resource == nil {
		return problem.NoSuch("resource")
	}

	v.notice = words.Textf("Enter the password of %s in the phone now: it is not shown again.",
		v.quote(made.Username()))
	return a.pageOf(v, http.StatusOK, *t.Resource, a.Fabric.Resources.KindOf(*t.Resource), nil,
		endpointPartOf(*t.Resource, made.Password))
}
