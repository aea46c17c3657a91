package rest

import (
	"net/http"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// An ingestKeyResponse is an ingest key in responses.
type ingestKeyResponse struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Token      string  `json:"token,omitempty"` // only in the response to the creation
	Prefix     string  `json:"prefix"`
	CreatedAt  string  `json:"created_at"`
	ExpiresAt  *string `json:"expires_at"`
	RevokedAt  *string `json:"revoked_at"`
	LastUsedAt *string `json:"last_used_at"`
}

// showIngestKey converts an ingest key for a response.
func showIngestKey(k fabric.IngestKey) ingestKeyResponse {
	return ingestKeyResponse{
		ID:         k.ID,
		Name:       k.Name,
		Prefix:     k.Prefix,
		CreatedAt:  iso(k.Created),
		ExpiresAt:  isoOrNull(k.Expires),
		RevokedAt:  isoOrNull(k.Revoked),
		LastUsedAt: isoOrNull(k.LastUsed),
	}
}

// ingestKeyAPI serves the ingest keys of a project. Its routes need the scope Management. Creating
// a key also needs Voice.
type ingestKeyAPI struct {
	keys *fabric.IngestKeys
	by   *credentials
}

func (a ingestKeyAPI) routes() []route {
	const keys = "/api/project/ingest_keys"
	return []route{
		{"GET", keys, a.by.manager(respondPage(a.list, showIngestKey))},
		{"POST", keys, a.by.manager(created(a.create, same))},
		{"DELETE", keys + "/{id}", a.by.manager(noContent(a.revoke))},
	}
}

// list serves GET /api/project/ingest_keys.
func (a ingestKeyAPI) list(
	r *http.Request, by fabric.Issuer, q page.Query,
) (page.Page[fabric.IngestKey], error) {
	return a.keys.List(r.Context(), by.ProjectID, q)
}

// create serves POST /api/project/ingest_keys.
func (a ingestKeyAPI) create(r *http.Request, by fabric.Issuer) (body ingestKeyResponse, err error) {
	if !by.Rights.Has(fabric.Voice) {
		return body, a.by.refused(r, by, problem.NoCredentials())
	}
	in, err := web.Decode[struct {
		Name string `json:"name"`
	}](r)
	if err != nil {
		return body, err
	}
	k, secret, err := a.keys.Create(r.Context(), by.ProjectID, in.Name, by.Rights)
	if err != nil {
		return body, err
	}
	body = showIngestKey(k)
	body.Token = secret
	return body, nil
}

// revoke serves DELETE /api/project/ingest_keys/{id}.
func (a ingestKeyAPI) revoke(r *http.Request, by fabric.Issuer) error {
	return a.keys.Revoke(r.Context(), by.ProjectID, r.PathValue("id"))
}
