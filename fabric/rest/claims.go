package rest

import (
	"errors"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

// claimsResponse holds the claims that logins carry in addition to a subscriber's profile.
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

// putClaims serves PUT /api/fabric/resources/subscribers/{id}/claims. It replaces all claims.
// Only email_verified is left unchanged if it is not sent.
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
