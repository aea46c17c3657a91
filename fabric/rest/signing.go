package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/web"
)

type signingKeyResponse struct {
	ID        string          `json:"id"`
	Key       string          `json:"key"`
	CreatedAt string          `json:"created_at"`
	Next      *nextSigningKey `json:"next"`
}

// A nextSigningKey is a key that starts signing at a later time.
type nextSigningKey struct {
	ID       string `json:"id"`
	Key      string `json:"key"`
	StartsAt string `json:"starts_at"`
}

func showSigningKeys(k fabric.SigningKeys) signingKeyResponse {
	body := signingKeyResponse{ID: k.Current.ID, Key: k.CurrentSecret, CreatedAt: iso(k.Current.Created)}
	if k.Next != nil {
		body.Next = &nextSigningKey{k.Next.ID, k.NextSecret, iso(k.Next.Starts)}
	}
	return body
}

// getSigningKey serves GET /api/fabric/webhooks/signing_key.
func (a *API) getSigningKey(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	k, err := a.fabric.Webhooks.SigningKeys(r.Context(), by.ProjectID)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, showSigningKeys(k))
}

// rotateSigningKey serves POST /api/fabric/webhooks/signing_key/rotate. The body is
// optional.
func (a *API) rotateSigningKey(w http.ResponseWriter, r *http.Request, by fabric.Issuer) error {
	overlap, err := readOverlap(r)
	if err != nil {
		return err
	}
	k, err := a.fabric.Webhooks.RotateSigningKey(r.Context(), by.ProjectID, overlap)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, showSigningKeys(k))
}
