package rest

import (
	"encoding/json"
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/web"
)

// A registrationTokenResponse is a registration token in responses.
type registrationTokenResponse struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Token     string  `json:"token,omitempty"` // only in the response to the request that creates it
	Prefix    string  `json:"prefix"`
	MaxUses   int64   `json:"max_uses"`
	Uses      int64   `json:"uses"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
	RevokedAt *string `json:"revoked_at"`
}

// showRegistrationToken converts a registration token for a response.
func showRegistrationToken(k fabric.RegistrationToken) registrationTokenResponse {
	return registrationTokenResponse{
		ID:        k.ID,
		Name:      k.Name,
		Prefix:    k.Prefix,
		MaxUses:   k.MaxUses,
		Uses:      k.Uses,
		CreatedAt: iso(k.Created),
		ExpiresAt: isoOrNull(k.Expires),
		RevokedAt: isoOrNull(k.Revoked),
	}
}

// registrationTokenAPI serves the initial access tokens of a project. Its routes need the scope
// Management.
type registrationTokenAPI struct{ tokens *fabric.RegistrationTokens }

func (a registrationTokenAPI) routes(by *credentials) []route {
	const tokens = "/api/project/registration_tokens"
	return []route{
		{"GET", tokens, by.manager(respondPage(a.list, showRegistrationToken))},
		{"POST", tokens, by.manager(created(a.create, same))},
		{"DELETE", tokens + "/{id}", by.manager(noContent(a.revoke))},
	}
}

// list serves GET /api/project/registration_tokens.
func (a registrationTokenAPI) list(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.RegistrationToken], error) {
	return a.tokens.List(r.Context(), by.ProjectID, q)
}

// create serves POST /api/project/registration_tokens.
func (a registrationTokenAPI) create(
	r *http.Request, by fabric.Issuer,
) (body registrationTokenResponse, err error) {
	in, err := web.Decode[struct {
		Name      string          `json:"name"`
		ExpiresAt json.RawMessage `json:"expires_at"`
		MaxUses   int64           `json:"max_uses"`
	}](r)
	expires, wrong := readInstant("expires_at", in.ExpiresAt)
	if err := faults(err, wrong); err != nil {
		return body, err
	}
	input := fabric.RegistrationTokenInput{Name: in.Name, MaxUses: in.MaxUses}
	if expires != nil {
		input.Expires = *expires
	}

	k, secret, err := a.tokens.Create(r.Context(), by.ProjectID, input, by.Rights)
	body = showRegistrationToken(k)
	body.Token = secret
	return body, err
}

// revoke serves DELETE /api/project/registration_tokens/{id}.
func (a registrationTokenAPI) revoke(r *http.Request, by fabric.Issuer) error {
	return a.tokens.Revoke(r.Context(), by.ProjectID, r.PathValue("id"))
}
