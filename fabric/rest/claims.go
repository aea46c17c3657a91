package rest

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

// claimsResponse is what logins say of a subscriber beside its profile.
type claimsResponse struct {
	EmailVerified bool `json:"email_verified"`
	fabric.StandardClaims
}

// getClaims serves GET /api/fabric/resources/subscribers/{id}/claims.
func (a *API) getClaims(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	s, err := a.fabric.Subscribers.Find(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, claimsResponse{s.Verified, s.Claims})
}

// putClaims serves PUT /api/fabric/resources/subscribers/{id}/claims: all of them,
// but whether the e-mail is verified, which stays where it is not said.
func (a *API) putClaims(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	members, err := web.Members(r)
	if err != nil {
		return err
	}
	claims, err := web.FromMembers[fabric.StandardClaims](members)
	account, bad := web.FromMembers[struct {
		EmailVerified *bool `json:"email_verified"`
	}](members)
	in := fabric.SubscriberInput{Claims: &claims, Verified: account.EmailVerified}
	if err := errors.Join(err, bad); err != nil {
		return also(err, in.Check(false))
	}
	s, err := a.fabric.Subscribers.Update(r.Context(), by.ProjectID, r.PathValue("id"), in)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, claimsResponse{s.Verified, s.Claims})
}
