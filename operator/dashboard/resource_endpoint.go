package dashboard

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
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

	r, err := a.findResource(v, id)
	if err != nil {
		return err
	}

	v.notice = words.Textf("Enter the password of %s in the phone now: it is not shown again.",
		v.quote(made.Username()))
	k := a.Fabric.Resources.KindOf(r)
	return a.pageOf(v, http.StatusOK, r, k, nil, endpointPartOf(r, made.Password))
}
