package oidc

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
)

// registrar serves the endpoints at which clients register themselves (RFC 7591, RFC 7592 and
// OpenID Connect Dynamic Client Registration).
type registrar struct{ *core }

// registerPath is the path of the registration endpoint. Below it, each client has an endpoint for
// managing its registration.
const registerPath = "/oauth/register"

// maxRegistration is the maximum size of the body of a registration. Keys may take up half of it.
const maxRegistration = 128 << 10

// register serves POST /oauth/register (RFC 7591, section 3.1).
func (rg *registrar) register(w http.ResponseWriter, r *http.Request) error {
	if err := onlyMethods(w, r, http.MethodPost); err != nil {
		return err
	}
	token, err := bearerToken(r)
	if err != nil {
		return err
	}
	by, err := rg.Registrations.Admit(r.Context(), token, web.Network(r))
	if err != nil {
		return err
	}
	if by.TokenID != "" {
		audit.As(r.Context(), audit.RegistrationToken, by.TokenID)
	}

	in, err := readRegistration(r)
	if err != nil {
		return err
	}
	c, err := rg.Registrations.Register(r.Context(), by, in.ClientMetadata)
	if err != nil {
		return err
	}
	return rg.answer(w, http.StatusCreated, c)
}

// manage serves /oauth/register/{client_id} (RFC 7592, section 2): GET reads the registration of a
// client, PUT replaces it, and DELETE deletes the client.
func (rg *registrar) manage(w http.ResponseWriter, r *http.Request) error {
	err := onlyMethods(w, r, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete)
	if err != nil {
		return err
	}
	token, err := bearerToken(r)
	if err != nil {
		return err
	}
	c, err := rg.Registrations.Authenticate(r.Context(), r.PathValue("client_id"), token)
	if err != nil {
		return err
	}
	audit.As(r.Context(), audit.Client, c.ID)

	switch r.Method {
	case http.MethodPut:
		if c, err = rg.replace(r, c); err != nil {
			return err
		}
	case http.MethodDelete:
		if err := rg.Registrations.Delete(r.Context(), c); err != nil {
			return err
		}
		web.NoStore(w)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return rg.answer(w, http.StatusOK, c)
}

// replace reads the new registration of a client and writes it. The request must contain the
// client's ID. If it contains a secret, that must be the client's secret (RFC 7592, section 2.2).
func (rg *registrar) replace(r *http.Request, c idp.RegisteredClient) (idp.RegisteredClient, error) {
	in, err := readRegistration(r)
	if err != nil {
		return c, err
	}
	switch {
	case in.ClientID != c.ID:
		return c, problem.BadParam("client_id", "client_id must be that of the client")
	case in.ClientSecret != "" && !c.HasSecret(in.ClientSecret, rg.Now()):
		return c, problem.BadParam("client_secret", "client_secret is not the client's secret")
	}
	return rg.Registrations.Update(r.Context(), c, in.ClientMetadata, web.Network(r))
}

// onlyMethods returns an error if r has a method other than the given ones.
func onlyMethods(w http.ResponseWriter, r *http.Request, methods ...string) error {
	for _, m := range methods {
		if r.Method == m {
			return nil
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return errMethod
}

// errMethod is the error for a method that an endpoint does not support.
var errMethod = problem.New(problem.Unsupported, "invalid_request", "this method is not supported here")

// bearerToken returns the token in the Authorization header, or "" if there is no such header.
func bearerToken(r *http.Request) (string, error) {
	token, ok := web.Bearer(r)
	if !ok && len(r.Header.Values("Authorization")) > 0 {
		return "", problem.New(problem.Unauthenticated, "invalid_token",
			"the Authorization header must have one token, with the scheme Bearer")
	}
	return token, nil
}

// A registrationRequest is the body of a registration or of its replacement.
type registrationRequest struct {
	ClientID, ClientSecret string
	idp.ClientMetadata
}

// readRegistration reads the body of r. Unknown members are ignored (RFC 7591, section 2), and null
// is the same as no member (RFC 7592, section 2.2).
func readRegistration(r *http.Request) (in registrationRequest, err error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return in, problem.New(problem.Unsupported, "invalid_client_metadata", "send application/json")
	}
	members, err := web.MembersWithin(r, maxRegistration)
	if err != nil {
		return in, err
	}
	maps.DeleteFunc(members, func(_ string, raw json.RawMessage) bool { return string(raw) == "null" })

	own, ownErr := web.FromMembers[struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}](members)
	basic, basicErr := web.FromMembers[idp.ClientMetadata](members)
	more, moreErr := web.FromMembers[idp.Metadata](members)
	subject, subjectErr := web.FromMembers[idp.CertificateSubject](members)
	basic.Metadata, basic.CertificateSubject = more, subject
	in = registrationRequest{ClientID: own.ID, ClientSecret: own.Secret, ClientMetadata: basic}
	if in.JWKS != nil {
		var compact bytes.Buffer
		_ = json.Compact(&compact, in.JWKS) // the members are valid JSON
		in.JWKS = compact.Bytes()
	}
	return in, errors.Join(ownErr, basicErr, moreErr, subjectErr)
}

// A registrationResponse is the response defined in RFC 7591, section 3.2.1 and RFC 7592, section 3.
type registrationResponse struct {
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret,omitempty"` // set only if it was just created
	SecretExpires *int64 `json:"client_secret_expires_at,omitempty"`
	IssuedAt      int64  `json:"client_id_issued_at"`
	AccessToken   string `json:"registration_access_token"`
	URI           string `json:"registration_client_uri"`
	idp.ClientMetadata
}

func (rg *registrar) answer(w http.ResponseWriter, status int, c idp.RegisteredClient) error {
	body := registrationResponse{
		ClientID:       c.ID,
		ClientSecret:   c.Secret,
		IssuedAt:       c.Created.Unix(),
		AccessToken:    c.AccessToken,
		URI:            rg.authURL + registerPath + "/" + c.ID,
		ClientMetadata: c.Registered(),
	}
	if c.AuthMethod == idp.AuthBasic || c.AuthMethod == idp.AuthPost {
		body.SecretExpires = new(int64) // 0: the secret does not expire
	}
	web.NoStore(w)
	return web.JSON(w, status, body)
}

// writeError writes an error response as defined in RFC 7591, section 3.2.2 and RFC 6750, section 3.
func (rg *registrar) writeError(w http.ResponseWriter, r *http.Request, err error) {
	web.NoStore(w)
	web.Refuse(r.Context(), err)
	p := problem.First(err)
	if p == nil || p.Kind == problem.Unavailable {
		web.LogInternal(r, rg.log, err)
	}
	if p == nil {
		rg.writeOAuth(w, r, http.StatusInternalServerError, "server_error", "internal error")
		return
	}

	if p == errMethod {
		rg.writeOAuth(w, r, http.StatusMethodNotAllowed, p.Code, p.Message)
		return
	}

	web.RetryAfter(w, p)
	switch p.Kind {
	case problem.Unavailable:
		rg.writeOAuth(w, r, http.StatusServiceUnavailable, "temporarily_unavailable", p.Message)
	case problem.RateLimited:
		rg.writeOAuth(w, r, http.StatusTooManyRequests, "slow_down", p.Message)
	case problem.Unauthenticated:
		challenge := `Bearer realm="selvage"`
		if len(r.Header.Values("Authorization")) > 0 {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		rg.writeOAuth(w, r, http.StatusUnauthorized, "invalid_token", p.Message)
	case problem.Forbidden:
		rg.writeOAuth(w, r, http.StatusBadRequest, "access_denied", p.Message)
	default:
		code, text := wrongMetadata(err)
		rg.writeOAuth(w, r, statusOf(p), code, text)
	}
}

// statusOf returns the HTTP status for an error that the request itself has caused.
func statusOf(p *problem.Error) int {
	switch {
	case p.Kind == problem.Unsupported:
		return http.StatusUnsupportedMediaType
	case p.Kind == problem.TooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// maxDescription is the maximum length of an error description.
const maxDescription = 1000

// wrongMetadata returns the code for invalid metadata, and a description that names each invalid
// member.
func wrongMetadata(err error) (code, text string) {
	code = "invalid_client_metadata"
	var all []string
	for _, p := range problem.All(err) {
		name, message := memberOf(p.Param), p.Message
		if name == "redirect_uris" {
			code = "invalid_redirect_uri"
		}
		if name != "" && !strings.HasPrefix(message, name+" ") {
			message = name + ": " + message
		}
		all = append(all, message)
	}

	text = description(strings.Join(all, "; "))
	return code, text[:min(len(text), maxDescription)]
}

// memberOf returns the name of a setting in client metadata, which may differ from its name in
// errors.
func memberOf(param string) string {
	if name, ok := memberNames[param]; ok {
		return name
	}
	return param
}

// memberNames maps settings to their metadata names, where the names differ.
var memberNames = map[string]string{
	"auth_method":              "token_endpoint_auth_method",
	"grant":                    "grant_types",
	"id_token_alg":             "id_token_signed_response_alg",
	"name":                     "client_name",
	"post_logout_redirect_uri": "post_logout_redirect_uris",
	"redirect_uri":             "redirect_uris",
	"request_uri":              "request_uris",
	"response_type":            "response_types",
	"type":                     "application_type",
}
