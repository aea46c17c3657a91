package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

type keyRequest struct {
	Name         *string         `json:"name"`
	Permissions  []string        `json:"permissions"`
	ExpiresAt    json.RawMessage `json:"expires_at"`
	SubprojectID string          `json:"subproject_id"`
}

// input converts the request to an APIKeyInput. err joins the errors for all invalid members.
func (in keyRequest) input(projectID string) (out fabric.APIKeyInput, err error) {
	var errs []error
	out.Name = in.Name
	if in.Name != nil && strings.TrimSpace(*in.Name) == "" {
		errs = append(errs, problem.Missing("name"))
	}
	if in.Permissions != nil {
		out.Scopes = []fabric.Scope{}
	}

	for _, name := range in.Permissions {
		scope, ok := fabric.ParseScope(name)
		if !ok {
			known := strings.Join(identifiers(fabric.Scopes()), ", ")
			errs = append(errs, problem.BadParam("permissions", "permissions must only contain %s", known))
			break
		}
		out.Scopes = append(out.Scopes, scope)
	}

	if out.Expires, err = readInstant("expires_at", in.ExpiresAt); err != nil {
		errs = append(errs, err)
	}
	if in.SubprojectID != "" && !strings.EqualFold(in.SubprojectID, projectID) {
		errs = append(errs, problem.BadParam("subproject_id",
			"subproject_id must be omitted; subprojects are not supported"))
	}

	return out, errors.Join(errs...)
}

// readInstant reads a time in this API's format or in Unix seconds. If the member was not sent, it
// returns nil. If the member is null or empty, it returns the zero time.
func readInstant(param string, raw json.RawMessage) (*time.Time, error) {
	var instant time.Time
	var unix seconds
	switch {
	case raw == nil:
		return nil, nil
	case string(raw) == "null", string(raw) == `""`:
		return &instant, nil
	case unix.UnmarshalJSON(raw) == nil:
		instant = time.Unix(int64(unix), 0).UTC()
	default:
		_ = json.Unmarshal(raw, &instant) // an invalid time stays zero and is rejected below
	}

	if instant.Year() < 1970 || instant.Year() > 9999 {
		return nil, problem.BadParam(param, "%s must be a time such as 2030-01-31T12:00:00Z, or null", param)
	}
	return &instant, nil
}

// identifiers returns the names of scopes in this API.
func identifiers(scopes []fabric.Scope) []string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = s.Identifier()
	}
	return names
}

// A keyResponse is an API key in responses.
type keyResponse struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Permissions []string   `json:"permissions"`
	Token       string     `json:"token,omitempty"` // only in the responses of create and rotate
	Prefix      string     `json:"prefix"`
	CreatedAt   string     `json:"created_at"`
	ExpiresAt   *string    `json:"expires_at"`
	RevokedAt   *string    `json:"revoked_at"`
	LastUsedAt  *string    `json:"last_used_at"`
	RotatedAt   *string    `json:"rotated_at"`
	Previous    *oldSecret `json:"previous"`
}

// An oldSecret describes the previous secret of a key while it is still accepted.
type oldSecret struct {
	ExpiresAt  string  `json:"expires_at"`
	LastUsedAt *string `json:"last_used_at"`
}

// showKey converts an API key for a response.
func showKey(k fabric.APIKey) keyResponse {
	body := keyResponse{
		ID:          k.ID,
		Name:        k.Name,
		Permissions: identifiers(k.Scopes),
		Prefix:      k.Prefix,
		CreatedAt:   iso(k.Created),
		ExpiresAt:   isoOrNull(k.Expires),
		RevokedAt:   isoOrNull(k.Revoked),
		LastUsedAt:  isoOrNull(k.LastUsed),
		RotatedAt:   isoOrNull(k.Rotated),
	}
	if k.OldHash != "" {
		body.Previous = &oldSecret{ExpiresAt: iso(k.OldUntil), LastUsedAt: isoOrNull(k.OldUsed)}
	}
	return body
}

// showSecret is like showKey, but includes the secret of the key.
func showSecret(k fabric.APIKey, secret string) keyResponse {
	body := showKey(k)
	body.Token = secret
	return body
}

// keyFault renames the parameter scopes in err to permissions, which is its name in this API.
func keyFault(err error) error { return respelled(err, "scopes", "permissions") }

// keyAPI serves the API keys of a project. Its routes need the Management scope.
type keyAPI struct{ keys *fabric.APIKeys }

func (a keyAPI) routes(by *credentials) []route {
	const keys = "/api/project/tokens"
	return []route{
		{"GET", keys, by.manager(respondPage(a.list, showKey))},
		{"POST", keys, by.manager(respondOK(a.create, same))},
		{"DELETE", keys + "/{id}", by.manager(noContent(a.revoke))},
		{"GET", keys + "/{id}", by.manager(respondOK(a.find, showKey))},
		{"PATCH", keys + "/{id}", by.manager(respondOK(a.update, showKey))},
		{"PUT", keys + "/{id}", by.manager(respondOK(a.update, showKey))},
		{"DELETE", keys + "/{id}/secret/previous", by.manager(noContent(a.endOldSecret))},
		{"POST", keys + "/{id}/rotate", by.manager(respondOK(a.rotate, same))},
	}
}

// list serves GET /api/project/tokens.
func (a keyAPI) list(r *http.Request, by fabric.Issuer, q page.Query) (page.Page[fabric.APIKey], error) {
	return a.keys.List(r.Context(), by.ProjectID, q)
}

// create serves POST /api/project/tokens.
func (a keyAPI) create(r *http.Request, by fabric.Issuer) (body keyResponse, err error) {
	sent, err := web.Decode[keyRequest](r)
	in, wrong := sent.input(by.ProjectID)
	if sent.Name == nil {
		wrong = errors.Join(problem.Missing("name"), wrong)
	}
	if err := faults(err, wrong, keyFault(a.keys.Check(in, true))); err != nil {
		return body, err
	}

	k, secret, err := a.keys.Create(r.Context(), by.ProjectID, in, by.Rights)
	if err != nil {
		return body, keyFault(err)
	}
	return showSecret(k, secret), nil
}

// find serves GET /api/project/tokens/{id}.
func (a keyAPI) find(r *http.Request, by fabric.Issuer) (fabric.APIKey, error) {
	return a.keys.Find(r.Context(), by.ProjectID, r.PathValue("id"))
}

// update serves PATCH and PUT /api/project/tokens/{id}. Members that are not sent remain unchanged.
func (a keyAPI) update(r *http.Request, by fabric.Issuer) (fabric.APIKey, error) {
	if _, err := a.find(r, by); err != nil {
		return fabric.APIKey{}, err
	}
	sent, err := web.Decode[keyRequest](r)
	in, wrong := sent.input(by.ProjectID)
	if err := faults(err, wrong, keyFault(a.keys.Check(in, false))); err != nil {
		return fabric.APIKey{}, err
	}
	k, err := a.keys.Update(r.Context(), by.ProjectID, r.PathValue("id"), in, by.Rights)
	return k, keyFault(err)
}

// revoke serves DELETE /api/project/tokens/{id}.
func (a keyAPI) revoke(r *http.Request, by fabric.Issuer) error {
	return a.keys.Revoke(r.Context(), by.ProjectID, r.PathValue("id"))
}

// rotate serves POST /api/project/tokens/{id}/rotate. The body is optional.
func (a keyAPI) rotate(r *http.Request, by fabric.Issuer) (body keyResponse, err error) {
	if _, err := a.find(r, by); err != nil {
		return body, err
	}
	overlap, err := readOverlap(r)
	if err != nil {
		return body, err
	}

	k, secret, err := a.keys.Rotate(r.Context(), by.ProjectID, r.PathValue("id"), overlap, by.Rights)
	if err != nil {
		return body, err
	}
	return showSecret(k, secret), nil
}

// endOldSecret serves DELETE /api/project/tokens/{id}/secret/previous.
func (a keyAPI) endOldSecret(r *http.Request, by fabric.Issuer) error {
	k, err := a.keys.Find(r.Context(), by.ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	_, err = a.keys.EndOldSecret(r.Context(), k)
	return err
}

// readOverlap reads the overlap of a rotation, during which the old secret is still accepted. The
// body is optional.
func readOverlap(r *http.Request) (time.Duration, error) {
	if r.ContentLength == 0 {
		return fabric.UsualOverlap, nil
	}
	in, err := web.Decode[struct {
		Overlap *seconds `json:"overlap"`
	}](r)
	if err != nil {
		return 0, err
	}
	if in.Overlap == nil {
		return fabric.UsualOverlap, nil
	}

	// Package fabric rejects values out of range. Clamping only prevents an overflow.
	most := seconds(fabric.MaxOverlap.Seconds()) + 1
	overlap := max(-1, min(*in.Overlap, most))
	return time.Duration(overlap) * time.Second, nil
}
